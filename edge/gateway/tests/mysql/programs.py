"""Programs with a loop each: `programs.py PROGRAM HOST PORT USER PASSWORD DATABASE`."""

import sys

import pymysql


def loop(cursor):
    """Children of each row, one by one."""
    cursor.execute("SELECT `id` FROM `orders` ORDER BY `id`")
    for (number,) in cursor.fetchall():
        cursor.execute("SELECT `what` FROM `order_lines` WHERE `order_id` = %s", (number,))
        cursor.fetchall()


def joined(cursor):
    """The same in one statement."""
    cursor.execute("SELECT o.`id`, l.`what` FROM `orders` o JOIN `order_lines` l ON l.`order_id` = o.`id`")
    cursor.fetchall()


def row_by_row(cursor):
    """Rows one by one, in one transaction."""
    for number in range(30):
        cursor.execute("INSERT INTO `audit` (`what`) VALUES (%s)", (f"did {number}",))
    cursor.connection.commit()


def at_once(cursor):
    """The same rows by one statement, which is what executemany makes of it."""
    cursor.executemany("INSERT INTO `audit` (`what`) VALUES (%s)", [(f"did {number}",) for number in range(30)])
    cursor.connection.commit()


def connect(cursor):
    """Nothing but a connection."""


PROGRAMS = {program.__name__: program for program in (loop, joined, row_by_row, at_once, connect)}

SCHEMA = [
    "CREATE TABLE IF NOT EXISTS orders (id INT PRIMARY KEY)",
    "CREATE TABLE IF NOT EXISTS order_lines (order_id INT, what VARCHAR(20))",
    "CREATE TABLE IF NOT EXISTS audit (what VARCHAR(20))",
    "REPLACE INTO orders VALUES " + ", ".join(f"({1000 + number})" for number in range(40)),
    "INSERT INTO order_lines SELECT id, 'a thing' FROM orders",
]

if __name__ == "__main__":
    name, host, port, user, password, database, *options = sys.argv[1:]
    at = {"host": host, "port": int(port), "user": user, "password": password, "database": database}
    if options == ["tls"]:
        at["ssl"] = {"check_hostname": False, "verify_mode": "none"}
    if options == ["no-tls"]:
        at["ssl_disabled"] = True
    if options == ["tls-preferred"]:
        import mysql.connector

        connection = mysql.connector.connect(**at, use_pure=True)
    else:
        connection = pymysql.connect(**at)
    cursor = connection.cursor()
    if name == "schema":
        for statement in SCHEMA:
            cursor.execute(statement)
        connection.commit()
    else:
        PROGRAMS[name](cursor)
    connection.close()
