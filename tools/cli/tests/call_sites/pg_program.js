const { Client, Pool } = require('pg')
const Cursor = require('pg-cursor')

async function titles(client, author) {
  const { rows } = await client.query('SELECT title FROM book WHERE author_id = $1', [author]) // OT001
  return rows
}

async function loop() {
  const client = new Client()
  await client.connect()
  const authors = await client.query('SELECT id FROM author ORDER BY id')
  for (const { id } of authors.rows) await titles(client, id)
  const cursor = client.query(new Cursor('SELECT id FROM book ORDER BY id')) // OT004
  while ((await cursor.read(10)).length > 0);
  await cursor.close()
  // pg-cursor hands out the last rows before its Sync is answered, and end() would then cut the connection: whether that
  // answer is still counted would be chance.
  await client.query('SELECT count(*) FROM author')
  await client.end()
}

async function pooled() {
  const pool = new Pool({ max: 2 })
  const client = await pool.connect()
  await client.query('BEGIN')
  for (let note = 0; note < 20; note++) {
    await client.query('INSERT INTO note (body) VALUES ($1)', [`note ${note}`]) // OT002
  }
  await client.query('COMMIT')
  client.release()
  const all = [1, 2, 3, 4].map((n) => pool.query('SELECT $1::int AS n', [n]))
  for (const [place, { rows }] of (await Promise.all(all)).entries()) {
    if (rows[0].n !== place + 1) throw new Error('an answer of another query')
  }
  await pool.query('SELECT no_such_column').then(
    () => process.exit(3),
    () => {}
  )
  await pool.end()
}

loop().then(pooled)
