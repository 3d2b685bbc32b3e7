// A program with mysql2: `acts.mjs PACKAGES HOST PORT USER PASSWORD DATABASE [again]`, with
// `again` for another login on the same connection. Prints what it saw of its own statements.
import { createRequire } from "node:module";

const [packages, host, port, user, password, database, again] = process.argv.slice(2);
const mysql = createRequire(packages + "/")("mysql2/promise");
const MARK = "/*act*/";
const seen = { rows: 0, errors: 0 };

async function fails(act) {
  try {
    await act();
  } catch {
    seen.errors += 1;
    return;
  }
  throw new Error("that should have failed");
}

const connection = await mysql.createConnection({
  host,
  port: Number(port),
  user,
  password,
  database,
  multipleStatements: true,
});
await connection.query("DROP TABLE IF EXISTS act");
await connection.query(
  "CREATE TABLE act (id INT PRIMARY KEY, name VARCHAR(40), price DECIMAL(10,2), at DATETIME(3)," +
    " length_of TIME(6), day DATE, of YEAR, ratio DOUBLE, near FLOAT, big BIGINT UNSIGNED, small SMALLINT, flags BIT(9))",
);
await connection.beginTransaction();
for (let number = 0; number < 20; number += 1) {
  const values = [number, "it's", "1.50", "2024-01-02 03:04:05.678", "-11:12:13.000001", "2024-02-29", 2024, 0.5, 0.25, "7", -7, 5];
  const marks = values.map(() => "?").join(", ");
  const run = number % 2 === 0 ? "execute" : "query";
  await connection[run](`INSERT ${MARK} INTO act VALUES (${marks})`, values);
}
await connection.commit();
for (const run of ["query", "execute", "execute"]) {
  const [found] = await connection[run](`SELECT ${MARK} * FROM act WHERE id >= ? ORDER BY id`, [3]);
  seen.rows += found.length;
}
const [several] = await connection.query(`SELECT ${MARK} 1; SELECT id FROM act LIMIT 3; SET @a = 1`);
seen.rows += several[0].length + several[1].length;
await fails(() => connection.execute(`INSERT ${MARK} INTO act (id) VALUES (?)`, [1]));
await fails(() => connection.query(`SELEC ${MARK}`));
const all = await Promise.all([1, 2, 3].map((number) => connection.query(`SELECT ${MARK} ?`, [number])));
seen.rows += all.reduce((sum, [found]) => sum + found.length, 0);
connection.unprepare(`SELECT ${MARK} * FROM act WHERE id >= ? ORDER BY id`);
await connection.ping();
if (again) await connection.changeUser({ user, password, database });
const [last] = await connection.execute(`SELECT ${MARK} REPEAT('x', 100000)`);
seen.rows += last.length;
await connection.end();
console.log(JSON.stringify(seen));
