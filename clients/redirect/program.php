<?php
// PDO with its database in the code: the arguments are HOST PORT.
[, $host, $port] = $argv;
$database = new PDO("pgsql:host=$host;port=$port;dbname=postgres", "onetrip", "onetrip-secret");
echo $database->query("SELECT 41 + 1")->fetchColumn(), "\n";
