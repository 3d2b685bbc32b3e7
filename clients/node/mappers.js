// What the acts of mappers share: `node NAME_acts.js ACT` runs one, `--list` names them.
//
// The connection comes from the PG* environment. Nothing is printed on success. Each fixed act does what its mapper's
// advice says (core/ledger/src/stacks/data).
import assert from 'node:assert/strict'
import * as seeded from './seeded.js'

export const { AUTHOR_COUNT, BOOKS_PER_AUTHOR, main } = seeded
export const ACCOUNT_IDS = seeded.ACCOUNT_IDS.slice(0, 12)
/** Rows that an act writes one by one: enough for each finding. */
export const FEW = 8
export const FEW_IDS = ACCOUNT_IDS.slice(0, FEW)

export const server = {
  host: process.env.PGHOST,
  port: Number(process.env.PGPORT),
  user: process.env.PGUSER,
  password: process.env.PGPASSWORD,
  database: process.env.PGDATABASE,
}

/** Rows for the table `log`. */
export const logRows = () => Array.from({ length: FEW }, (_, i) => ({ message: `message ${i + 1}` }))

/** Rows for the table `tags`, with names that no row has. */
export const newTags = () => seeded.unseen(FEW).map((name) => ({ name }))

/** Checks authors with their books. */
export const expectBooks = (authors) => {
  assert.equal(authors.length, AUTHOR_COUNT)
  for (const author of authors) assert.equal(author.books.length, BOOKS_PER_AUTHOR)
}

export const times = async (count, work) => {
  for (let i = 0; i < count; i++) await work()
}
