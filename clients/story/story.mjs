// The story loop of node-postgres: `node story.mjs loop|reads COUNT`. Parameters are bound, nothing is prepared.
import { createHash } from 'node:crypto'
import { createRequire } from 'node:module'

// The packages are those of the other programs.
const pg = createRequire(new URL('../node/package.json', import.meta.url))('pg')

const EMPLOYEES = 'SELECT id, name FROM emp ORDER BY id'
const SALARY = 'SELECT amount FROM salary WHERE emp_id = $1'

const loop = async (client, count, lines) => {
  await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
  const employees = await client.query(EMPLOYEES)
  for (const { id, name } of employees.rows.slice(0, count)) {
    lines.push(`${id} ${name}`)
    const salaries = await client.query(SALARY, [id])
    for (const { amount } of salaries.rows) lines.push(`${amount}`)
  }
  await client.query('COMMIT')
}

const reads = async (client, count, lines) => {
  for (let number = 1; number <= count; number++) {
    await client.query('BEGIN')
    const salaries = await client.query(SALARY, [100 + 3 * number])
    for (const { amount } of salaries.rows) lines.push(`${amount}`)
    await client.query('COMMIT')
  }
}

const work = { loop, reads }[process.argv[2]]
const count = Number(process.argv[3])
if (!work || !Number.isInteger(count) || process.argv.length !== 4) {
  console.error('usage: story.mjs loop|reads COUNT')
  process.exit(2)
}
const client = new pg.Client()
await client.connect()
const lines = []
const began = performance.now()
await work(client, count, lines)
const milliseconds = performance.now() - began
await client.end()
const checksum = createHash('sha256').update(lines.join('\n')).digest('hex').slice(0, 16)
console.log(`${milliseconds.toFixed(1)} ${checksum}`)
