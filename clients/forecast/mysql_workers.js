// mysql2: 8 workers, each with a connection of a pool, 50 statements and 2 to 6 ms of thinking after each.
const mysql = require("../node/node_modules/mysql2/promise");

const WORKERS = 8;
const STATEMENTS = 50;

const pool = mysql.createPool({
  host: process.env.MYSQL_HOST,
  port: Number(process.env.MYSQL_TCP_PORT),
  user: process.env.MYSQL_USER,
  password: process.env.MYSQL_PWD,
  database: process.env.MYSQL_DATABASE,
  connectionLimit: WORKERS,
});

async function work(worker) {
  for (let i = 0; i < STATEMENTS; i++) {
    const number = (worker * STATEMENTS + i) * 7919;
    await pool.query("SELECT sum(amount) FROM pay WHERE person = ?", [7 * (1 + (number % 400))]);
    await new Promise((resolve) => setTimeout(resolve, 2 + (number % 5)));
  }
}

async function main() {
  await Promise.all(Array.from({ length: WORKERS }, (_, worker) => work(worker)));
  await pool.end();
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
