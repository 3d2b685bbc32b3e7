// What the acts of the drivers share: `node NAME.js ACT` runs one, `--list` names them.
import { randomUUID } from 'node:crypto'

// What the seeded tables hold (clients/schema.sql, clients/mysql/schema.sql).
export const AUTHOR_COUNT = 12
export const BOOKS_PER_AUTHOR = 3
export const LOOP_COUNT = 10
export const WRITE_ROWS = 20
export const ACCOUNT_IDS = [
  311, 324, 338, 347, 359, 366, 372, 385, 394, 408,
  419, 423, 437, 446, 458, 469, 471, 483, 495, 502,
]
export const PAGE_AUTHORS = [112, 140, 175, 203]

export const messages = Array.from({ length: WRITE_ROWS }, (_, i) => `message ${i + 1}`)
/** Names that no row has. */
export const unseen = (count = WRITE_ROWS) => Array.from({ length: count }, () => `unseen ${randomUUID()}`)
export const upTo = (count) => Array.from({ length: count }, (_, i) => i + 1)

/** Runs the act that the command line names, and `close` after it. */
export const main = async (acts, close = async () => {}) => {
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
