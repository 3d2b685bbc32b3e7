// What the acts of mappers share: `node NAME_acts.js ACT` runs one, `--list` names them.
//
// The connection comes from the PG* environment. Nothing is printed on success. Each fixed act does what its mapper's
// advice says (core/ledger/src/stacks/data).
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'

// What the seeded tables hold (clients/schema.sql).
export const AUTHOR_COUNT = 12
export const BOOKS_PER_AUTHOR = 3
export const ACCOUNT_IDS = [311, 324, 338, 347, 359, 366, 372, 385, 394, 408, 419, 423]
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
export const newTags = () => Array.from({ length: FEW }, () => ({ name: `unseen ${randomUUID()}` }))

/** Checks authors with their books. */
export const expectBooks = (authors) => {
  assert.equal(authors.length, AUTHOR_COUNT)
  for (const author of authors) assert.equal(author.books.length, BOOKS_PER_AUTHOR)
}

export const times = async (count, work) => {
  for (let i = 0; i < count; i++) await work()
}

/** Runs the act that the command line names, and `close` after it. */
export const main = async (acts, close) => {
  const name = process.argv[2]
  if (name === '--list') {
    console.log(Object.keys(acts).join('\n'))
  } else if (!Object.hasOwn(acts, name ?? '')) {
    console.error(`usage: ${Object.keys(acts).join('|')}`)
    process.exitCode = 2
  } else {
    try {
      await acts[name]()
    } finally {
      await close()
    }
  }
}
