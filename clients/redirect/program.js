// node-postgres with its database in the code: the arguments are HOST PORT.
const { Client } = require("../node/node_modules/pg");
const [host, port] = process.argv.slice(2);
const client = new Client({ host, port, user: "onetrip", password: "onetrip-secret", database: "postgres" });
client
  .connect()
  .then(() => client.query("SELECT 41 + 1 AS answer"))
  .then((result) => console.log(result.rows[0].answer))
  .finally(() => client.end());
