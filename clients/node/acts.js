// Runs one act of node-postgres: `node acts.js ACT`, or `--list`.
//
// The connection comes from the PG* environment. Nothing is printed on success.
import assert from 'node:assert/strict'
import pg from 'pg'
import Cursor from 'pg-cursor'
import { ACCOUNT_IDS, AUTHOR_COUNT, BOOKS_PER_AUTHOR, LOOP_COUNT, PAGE_AUTHORS, WRITE_ROWS } from './seeded.js'
import { main, messages, unseen, upTo } from './seeded.js'

// What the seeded tables hold (clients/schema.sql).
const WALK_ROWS = 50
const TABLE_ROWS = 200
const FILE_IDS = [613, 627, 634]
const FILE_CONTENT = '0123456789'.repeat(30)
const FILE_PORTION = 100
const READ_ONLY = 0x40000 // INV_READ of libpq-fs.h

const AUTHORS = 'SELECT id, name FROM authors ORDER BY id'
const BOOKS_OF = 'SELECT title, price FROM books WHERE author_id = $1 ORDER BY id'
const INSERT_LOG = 'INSERT INTO log (message) VALUES ($1)'
const UPDATE_ACCOUNT = 'UPDATE accounts SET balance = balance + $1 WHERE id = $2'
const SELECT_VALUE = 'SELECT v FROM t WHERE id = $1'

/** An act with a connection of its own. */
const connected = (work) => async () => {
  const client = new pg.Client()
  await client.connect()
  try {
    await work(client)
  } finally {
    await client.end()
  }
}

const inTransaction = (work) => async (client) => {
  await client.query('BEGIN')
  await work(client)
  await client.query('COMMIT')
}

const select = async (client, id) => {
  const { rows } = await client.query(SELECT_VALUE, [id])
  assert.deepEqual(rows, [{ v: `value ${id}` }])
}

/** Asks for the ids step, 2 * step, ... one by one. */
const selects = (count, step = 1) => async (client) => {
  for (const number of upTo(count)) await select(client, number * step)
}

const walk = (fetchSize, rowCount) => async (client) => {
  const query = 'SELECT id, v FROM t WHERE id <= $1 ORDER BY id'
  const cursor = client.query(new Cursor(query, [rowCount]))
  let total = 0
  for (;;) {
    const rows = await cursor.read(fetchSize)
    total += rows.length
    if (rows.length === 0) break
  }
  await cursor.close()
  assert.equal(total, rowCount)
}

const booksOfEach = (limit) => async (client) => {
  const authors = await client.query(`${AUTHORS} LIMIT ${limit}`)
  for (const author of authors.rows) {
    const books = await client.query(BOOKS_OF, [author.id])
    assert.equal(books.rowCount, BOOKS_PER_AUTHOR)
  }
}

const booksOfAll = async (client) => {
  const authors = await client.query(AUTHORS)
  const ids = authors.rows.map((author) => author.id)
  const books = await client.query('SELECT title FROM books WHERE author_id = ANY($1)', [ids])
  assert.equal(books.rowCount, AUTHOR_COUNT * BOOKS_PER_AUTHOR)
}

const insertEach = async (client) => {
  for (const text of messages) await client.query(INSERT_LOG, [text])
}

const insertAll = async (client) => {
  await client.query('INSERT INTO log (message) SELECT unnest($1::text[])', [messages])
}

const updateEach = async (client) => {
  for (const id of ACCOUNT_IDS) {
    assert.equal((await client.query(UPDATE_ACCOUNT, [1, id])).rowCount, 1)
  }
}

const updateAll = async (client) => {
  const query = 'UPDATE accounts SET balance = balance + 1 WHERE id = ANY($1)'
  assert.equal((await client.query(query, [ACCOUNT_IDS])).rowCount, WRITE_ROWS)
}

const repeat = (times) => async (client) => {
  for (let i = 0; i < times; i++) {
    const { rows } = await client.query('SELECT name FROM authors WHERE id = $1', [140])
    assert.deepEqual(rows, [{ name: 'author 140' }])
  }
}

const tenTransactions = async (client) => {
  for (const number of upTo(10)) {
    await inTransaction((c) => select(c, number * 7))(client)
  }
}

const tenConnections = async () => {
  for (const number of upTo(10)) await connected((client) => select(client, number * 7))()
}

const poolCheckin = async () => {
  const pool = new pg.Pool({ max: 1 })
  const client = await pool.connect()
  await select(client, 1)
  client.release()
  await pool.end()
}

/** The first column of the first row, or undefined. */
const value = async (client, text, ...values) => {
  const { rows } = await client.query({ text, values, rowMode: 'array' })
  return rows[0]?.[0]
}

const balanceOfEach = async (client) => {
  for (const id of ACCOUNT_IDS.slice(0, 12)) {
    assert.ok(await value(client, 'SELECT balance FROM accounts WHERE id = $1', id))
  }
}

const balanceOfAll = async (client) => {
  const query = 'SELECT id, balance FROM accounts WHERE id = ANY($1)'
  assert.equal((await client.query(query, [ACCOUNT_IDS.slice(0, 12)])).rowCount, 12)
}

/** The driver has no large objects of its own: the server's functions are called by SQL. */
const readByPortions = async (client) => {
  for (const id of FILE_IDS) {
    const content = await value(client, 'SELECT content FROM files WHERE id = $1', id)
    const handle = await value(client, 'SELECT lo_open($1, $2)', content, READ_ONLY)
    let read = ''
    while (read.length < FILE_CONTENT.length) {
      read += await value(client, 'SELECT loread($1, $2)', handle, FILE_PORTION)
    }
    await value(client, 'SELECT lo_close($1)', handle)
    assert.equal(read, FILE_CONTENT)
  }
}

const readWhole = async (client) => {
  for (const id of FILE_IDS) {
    const read = await value(client, 'SELECT lo_get(content) FROM files WHERE id = $1', id)
    assert.equal(read.toString(), FILE_CONTENT)
  }
}

/** Ten requests that take their connection from a pool. */
const tenRequests = (work) => async () => {
  const pool = new pg.Pool({ max: 1 })
  for (const _ of upTo(10)) {
    const client = await pool.connect()
    await work(client)
    client.release()
  }
  await pool.end()
}

const countAuthors = async (client) => {
  assert.equal(await value(client, 'SELECT count(*)::int FROM authors'), AUTHOR_COUNT)
}

const testFirst = async (client) => {
  await client.query('SELECT 1')
  await countAuthors(client)
}

const AUTHOR_PAGE = [
  'SELECT name FROM authors WHERE id = $1',
  'SELECT title FROM books WHERE author_id = $1 ORDER BY id',
  'SELECT max(price) FROM books WHERE author_id = $1',
]

const pagesByThree = async (client) => {
  for (const author of PAGE_AUTHORS) {
    for (const query of AUTHOR_PAGE) assert.ok(await value(client, query, author))
  }
}

/** One statement asks for all three; without `pipeline: true` the driver sends one at a time. */
const pagesByOne = async (client) => {
  const query = `SELECT name, array_agg(title ORDER BY books.id), max(price)
    FROM authors JOIN books ON author_id = authors.id
    WHERE authors.id = $1 GROUP BY authors.id`
  for (const author of PAGE_AUTHORS) assert.equal(await value(client, query, author), `author ${author}`)
}

const readThenWrite = async (client) => {
  for (const id of ACCOUNT_IDS) {
    const query = 'SELECT balance FROM accounts WHERE id = $1 FOR UPDATE'
    const balance = (await value(client, query, id)) + 1
    await client.query('UPDATE accounts SET balance = $1 WHERE id = $2', [balance, id])
  }
}

const writeReturning = async (client) => {
  for (const id of ACCOUNT_IDS) {
    assert.ok(await value(client, `${UPDATE_ACCOUNT} RETURNING balance`, 1, id))
  }
}

const nextvalEach = async (client) => {
  for (const text of messages) {
    const id = await value(client, "SELECT nextval('tickets_id_seq')")
    await client.query('INSERT INTO tickets (id, note) VALUES ($1, $2)', [id, text])
  }
}

const insertReturning = async (client) => {
  for (const text of messages) {
    assert.ok(await value(client, 'INSERT INTO tickets (note) VALUES ($1) RETURNING id', text))
  }
}

const lookUpThenInsert = async (client) => {
  for (const name of unseen()) {
    const id = await value(client, 'SELECT id FROM tags WHERE name = $1', name)
    if (id === undefined) await client.query('INSERT INTO tags (name) VALUES ($1)', [name])
  }
}

const insertUnlessThere = async (client) => {
  for (const name of unseen()) {
    await client.query('INSERT INTO tags (name) VALUES ($1) ON CONFLICT DO NOTHING', [name])
  }
}

const twoReads = async (client) => {
  await countAuthors(client)
  await client.query('SELECT max(price) FROM books')
}

/** Nothing was written, so the program sees nothing to commit. */
const readThenRollBack = async (client) => {
  await client.query('BEGIN')
  await twoReads(client)
  await client.query('ROLLBACK')
}

const acts = {
  connect: connected(async () => {}),
  select_1: connected(selects(1)),
  select_2: connected(selects(2)),
  select_6: connected(selects(6)),
  txn_1: connected(inTransaction(selects(1))),
  txn_2: connected(inTransaction(selects(2))),
  // The driver queues: each leaves only when the one before it is answered.
  promise_all_5: connected((client) => {
    process.noDeprecation = true // it warns of just this use
    return Promise.all(upTo(5).map((id) => select(client, id)))
  }),
  named_2: connected(async (client) => {
    for (const id of [1, 2]) {
      await client.query({ name: 'value-of', text: SELECT_VALUE, values: [id] })
    }
  }),
  array_param: connected(async (client) => {
    const query = 'SELECT count(*)::int FROM authors WHERE id = ANY($1)'
    const { rows } = await client.query(query, [[101, 105, 112]])
    assert.deepEqual(rows, [{ count: 3 }])
  }),
  pool_checkin: poolCheckin,
  cursor_50_by_10: connected(inTransaction(walk(10, WALK_ROWS))),
  n_plus_one_10: connected(inTransaction(booksOfEach(LOOP_COUNT))),

  bad_OT001: connected(booksOfEach(AUTHOR_COUNT)),
  fixed_OT001: connected(booksOfAll),
  bad_OT002: connected(inTransaction(insertEach)),
  bad_OT002_update: connected(inTransaction(updateEach)),
  fixed_OT002: connected(inTransaction(insertAll)),
  fixed_OT002_update: connected(inTransaction(updateAll)),
  bad_OT003: connected(insertEach),
  fixed_OT003: connected(insertAll),
  bad_OT004: connected(inTransaction(walk(10, TABLE_ROWS))),
  fixed_OT004: connected(inTransaction(walk(1000, TABLE_ROWS))),
  bad_OT005: connected(inTransaction(repeat(10))),
  fixed_OT005: connected(inTransaction(repeat(1))),
  bad_OT006: connected(tenTransactions),
  fixed_OT006: connected(selects(10, 7)),
  bad_OT008: tenConnections,
  fixed_OT008: connected(selects(10, 7)),
  bad_OT009: connected(balanceOfEach),
  fixed_OT009: connected(balanceOfAll),
  bad_OT010: connected(inTransaction(readByPortions)),
  fixed_OT010: connected(inTransaction(readWhole)),
  bad_OT011: tenRequests(testFirst),
  fixed_OT011: tenRequests(countAuthors),
  bad_OT012: connected(pagesByThree),
  fixed_OT012: connected(pagesByOne),
  bad_OT013: connected(inTransaction(readThenWrite)),
  fixed_OT013: connected(inTransaction(writeReturning)),
  bad_OT014: connected(inTransaction(nextvalEach)),
  fixed_OT014: connected(inTransaction(insertReturning)),
  bad_OT015: connected(inTransaction(lookUpThenInsert)),
  fixed_OT015: connected(inTransaction(insertUnlessThere)),
  bad_OT016: tenRequests(readThenRollBack),
  fixed_OT016: tenRequests(twoReads),
}

await main(acts)
