// Runs one act of mysql2: `node mysql2_acts.js ACT`, or `--list`.
//
// The connection comes from the MYSQL_* environment. Nothing is printed on success.
import assert from 'node:assert/strict'
import mysql from 'mysql2/promise'
import { ACCOUNT_IDS, AUTHOR_COUNT, BOOKS_PER_AUTHOR, LOOP_COUNT, PAGE_AUTHORS, WRITE_ROWS } from './seeded.js'
import { main, messages, unseen, upTo } from './seeded.js'

const AUTHORS = 'SELECT id, name FROM authors ORDER BY id'
const BOOKS_OF = 'SELECT title, price FROM books WHERE author_id = ? ORDER BY id'
const INSERT_LOG = 'INSERT INTO log (message) VALUES (?)'
const UPDATE_ACCOUNT = 'UPDATE accounts SET balance = balance + ? WHERE id = ?'
const SELECT_VALUE = 'SELECT v FROM t WHERE id = ?'

const settings = () => ({
  host: process.env.MYSQL_HOST,
  port: Number(process.env.MYSQL_TCP_PORT),
  user: process.env.MYSQL_USER,
  password: process.env.MYSQL_PWD,
  database: process.env.MYSQL_DATABASE,
})

/** An act with a connection of its own. */
const connected = (work) => async () => {
  const client = await mysql.createConnection(settings())
  try {
    await work(client)
  } finally {
    await client.end()
  }
}

const inTransaction = (work) => async (client) => {
  await client.beginTransaction()
  await work(client)
  await client.commit()
}

/** The rows of a query. */
const rows = async (client, text, ...values) => (await client.query(text, values))[0]

const select = async (client, id) => {
  assert.equal((await rows(client, SELECT_VALUE, id))[0].v, `value ${id}`)
}

/** The same, prepared: the driver keeps what it has prepared. */
const execute = async (client, id) => {
  const [found] = await client.execute(SELECT_VALUE, [id])
  assert.equal(found[0].v, `value ${id}`)
}

/** Asks for the ids step, 2 * step, ... one by one. */
const selects = (count, step = 1, how = select) => async (client) => {
  for (const number of upTo(count)) await how(client, number * step)
}

const prepareAgain = async (client, id) => {
  await execute(client, id)
  client.unprepare(SELECT_VALUE)
}

const booksOfEach = (limit) => async (client) => {
  for (const author of await rows(client, `${AUTHORS} LIMIT ${limit}`)) {
    assert.equal((await rows(client, BOOKS_OF, author.id)).length, BOOKS_PER_AUTHOR)
  }
}

const booksOfAll = async (client) => {
  const ids = (await rows(client, AUTHORS)).map((author) => author.id)
  const books = await rows(client, 'SELECT title FROM books WHERE author_id IN (?)', ids)
  assert.equal(books.length, AUTHOR_COUNT * BOOKS_PER_AUTHOR)
}

const insertEach = async (client) => {
  for (const text of messages) await client.query(INSERT_LOG, [text])
}

const insertAll = async (client) => {
  await client.query('INSERT INTO log (message) VALUES ?', [messages.map((text) => [text])])
}

const updateEach = async (client) => {
  for (const id of ACCOUNT_IDS) assert.equal((await rows(client, UPDATE_ACCOUNT, 1, id)).affectedRows, 1)
}

const updateAll = async (client) => {
  const query = 'UPDATE accounts SET balance = balance + 1 WHERE id IN (?)'
  assert.equal((await rows(client, query, ACCOUNT_IDS)).affectedRows, WRITE_ROWS)
}

const repeat = (times) => async (client) => {
  for (let i = 0; i < times; i++) {
    assert.equal((await rows(client, 'SELECT name FROM authors WHERE id = ?', 140))[0].name, 'author 140')
  }
}

const tenTransactions = async (client) => {
  for (const number of upTo(10)) await inTransaction((c) => select(c, number * 7))(client)
}

const tenConnections = async () => {
  for (const number of upTo(10)) await connected((client) => select(client, number * 7))()
}

const balanceOfEach = async (client) => {
  for (const id of ACCOUNT_IDS.slice(0, 12)) {
    assert.equal((await rows(client, 'SELECT balance FROM accounts WHERE id = ?', id)).length, 1)
  }
}

const balanceOfAll = async (client) => {
  const query = 'SELECT id, balance FROM accounts WHERE id IN (?)'
  assert.equal((await rows(client, query, ACCOUNT_IDS.slice(0, 12))).length, 12)
}

const countAuthors = async (client) => {
  assert.equal((await rows(client, 'SELECT count(*) AS count FROM authors'))[0].count, AUTHOR_COUNT)
}

/** Ten requests that take their connection from a pool. */
const tenRequests = (work) => async () => {
  const pool = mysql.createPool({ ...settings(), connectionLimit: 1 })
  for (const _ of upTo(10)) {
    const client = await pool.getConnection()
    await work(client)
    client.release()
  }
  await pool.end()
}

const pingFirst = async (client) => {
  await client.ping()
  await countAuthors(client)
}

const setFirst = async (client) => {
  await client.query('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED')
  await countAuthors(client)
}

const AUTHOR_PAGE = [
  'SELECT name FROM authors WHERE id = ?',
  'SELECT title FROM books WHERE author_id = ? ORDER BY id',
  'SELECT max(price) AS price FROM books WHERE author_id = ?',
]

const pagesByThree = async (client) => {
  for (const author of PAGE_AUTHORS) {
    for (const query of AUTHOR_PAGE) assert.ok((await rows(client, query, author)).length > 0)
  }
}

/** One statement asks for all three: the driver sends one at a time. */
const pagesByOne = async (client) => {
  const query = `SELECT name, group_concat(title ORDER BY books.id) AS titles, max(price) AS price
    FROM authors JOIN books ON author_id = authors.id WHERE authors.id = ? GROUP BY name`
  for (const author of PAGE_AUTHORS) assert.equal((await rows(client, query, author))[0].name, `author ${author}`)
}

const readThenWrite = async (client) => {
  for (const id of ACCOUNT_IDS) {
    const [row] = await rows(client, 'SELECT balance FROM accounts WHERE id = ? FOR UPDATE', id)
    await client.query('UPDATE accounts SET balance = ? WHERE id = ?', [row.balance + 1, id])
  }
}

const lookUpThenInsert = async (client) => {
  for (const name of unseen()) {
    const found = await rows(client, 'SELECT id FROM tags WHERE name = ?', name)
    if (found.length === 0) await client.query('INSERT INTO tags (name) VALUES (?)', [name])
  }
}

const insertUnlessThere = async (client) => {
  for (const name of unseen()) await client.query('INSERT IGNORE INTO tags (name) VALUES (?)', [name])
}

const twoReads = async (client) => {
  await countAuthors(client)
  await client.query('SELECT max(price) FROM books')
}

/** Nothing was written, so the program sees nothing to commit. */
const readThenRollBack = async (client) => {
  await client.beginTransaction()
  await twoReads(client)
  await client.rollback()
}

/** Each answer names the next question. */
const chain = async (client) => {
  let number = 713
  for (const _ of upTo(10)) number = (await rows(client, 'SELECT next FROM links WHERE id = ?', number))[0].next
  assert.equal(number, 713)
}

/** Too few to be a loop. */
const twoOfEach = async (client) => {
  for (const author of PAGE_AUTHORS.slice(0, 2)) {
    assert.equal((await rows(client, BOOKS_OF, author)).length, BOOKS_PER_AUTHOR)
  }
}

const acts = {
  connect: connected(async () => {}),
  select_1: connected(selects(1)),
  select_2: connected(selects(2)),
  select_6: connected(selects(6)),
  txn_1: connected(inTransaction(selects(1))),
  txn_2: connected(inTransaction(selects(2))),
  ping_3: connected(async (client) => {
    for (const _ of upTo(3)) await client.ping()
  }),
  prepared_2: connected(selects(2, 1, execute)),
  // The driver queues: each leaves only when the one before it is answered.
  promise_all_5: connected((client) => Promise.all(upTo(5).map((id) => select(client, id)))),
  pool_checkin: async () => {
    const pool = mysql.createPool({ ...settings(), connectionLimit: 1 })
    const client = await pool.getConnection()
    await select(client, 1)
    client.release()
    await pool.end()
  },
  n_plus_one_10: connected(inTransaction(booksOfEach(LOOP_COUNT))),

  bad_OT001: connected(booksOfEach(AUTHOR_COUNT)),
  fixed_OT001: connected(booksOfAll),
  bad_OT002: connected(inTransaction(insertEach)),
  bad_OT002_update: connected(inTransaction(updateEach)),
  fixed_OT002: connected(inTransaction(insertAll)),
  fixed_OT002_update: connected(inTransaction(updateAll)),
  bad_OT003: connected(insertEach),
  fixed_OT003: connected(insertAll),
  bad_OT005: connected(inTransaction(repeat(10))),
  fixed_OT005: connected(inTransaction(repeat(1))),
  bad_OT006: connected(tenTransactions),
  fixed_OT006: connected(selects(10, 7)),
  bad_OT007: connected(selects(10, 7, prepareAgain)),
  fixed_OT007: connected(selects(10, 7, execute)),
  bad_OT008: tenConnections,
  fixed_OT008: connected(selects(10, 7)),
  bad_OT009: connected(balanceOfEach),
  fixed_OT009: connected(balanceOfAll),
  bad_OT011: tenRequests(pingFirst),
  bad_OT011_set: tenRequests(setFirst),
  fixed_OT011: tenRequests(countAuthors),
  bad_OT012: connected(pagesByThree),
  fixed_OT012: connected(pagesByOne),
  bad_OT013: connected(inTransaction(readThenWrite)),
  fixed_OT013: connected(inTransaction(updateEach)),
  bad_OT015: connected(inTransaction(lookUpThenInsert)),
  fixed_OT015: connected(inTransaction(insertUnlessThere)),
  bad_OT016: tenRequests(readThenRollBack),
  fixed_OT016: tenRequests(twoReads),

  trap_chain: connected(chain),
  trap_two_of_each: connected(twoOfEach),
}

await main(acts)
