"""Programs with real drivers: `acts.py DRIVER HOST PORT USER PASSWORD DATABASE DIRECTORY`.

Prints as JSON what the program saw of its own statements, which carry a mark: rows and errors.
"""

import json
import sys
from pathlib import Path

MARK = "/*act*/"
seen = {"rows": 0, "errors": 0}


def rows(cursor):
    found = cursor.fetchall() if cursor.description else []
    seen["rows"] += len(found)


def fails(error_type, act):
    try:
        act()
    except error_type:
        seen["errors"] += 1
    else:
        raise AssertionError("that should have failed")


def schema(execute):
    execute("DROP TABLE IF EXISTS act")
    execute(
        "CREATE TABLE act (id INT PRIMARY KEY, name VARCHAR(40), price DECIMAL(10,2), at DATETIME(3),"
        " length_of TIME(6), day DATE, of YEAR, ratio DOUBLE, near FLOAT, big BIGINT UNSIGNED, small SMALLINT,"
        " flags BIT(9), body LONGBLOB, kind ENUM('a','b'), sort SET('x','y'))"
    )
    execute("DROP PROCEDURE IF EXISTS two_results")
    execute("CREATE PROCEDURE two_results() BEGIN SELECT 1; SELECT id FROM act ORDER BY id LIMIT 3; END")


ROW = (
    "%s, 'name', 1.50, '2024-01-02 03:04:05.678', '-11:12:13.000001', '2024-02-29', 2024, 0.5, 0.25,"
    " 18446744073709551615, -7, b'101', REPEAT('x', %s), 'b', 'x,y'"
)


def common(connection, error_type):
    """What every DB-API driver can do."""
    cursor = connection.cursor()
    schema(cursor.execute)
    for number in range(20):
        cursor.execute(f"INSERT {MARK} INTO act VALUES ({ROW % (number, number * 100)})")
    cursor.execute(f"INSERT {MARK} INTO act (id) VALUES (100)")
    connection.commit()
    cursor.execute(f"SELECT {MARK} * FROM act ORDER BY id")
    rows(cursor)
    cursor.execute(f"SELECT {MARK} id FROM act WHERE id < %s", (5,))
    rows(cursor)
    cursor.execute(f"SELECT {MARK} 1 FROM act WHERE 1 = 0")
    rows(cursor)
    cursor.execute(f"SELECT {MARK} REPEAT('y', 300000), REPEAT('z', 70000), NULL, ''")
    rows(cursor)
    cursor.executemany(
        f"INSERT {MARK} INTO act (id, name) VALUES (%s, %s)", [(number, "it's") for number in range(200, 230)]
    )
    connection.rollback()
    fails(error_type, lambda: cursor.execute(f"SELECT {MARK} nothing FROM nowhere"))
    fails(error_type, lambda: cursor.execute(f"SELEC {MARK}"))
    cursor.close()


def pymysql_program(at, directory):
    import pymysql
    import pymysql.constants.CLIENT as CLIENT
    import pymysql.cursors

    connection = pymysql.connect(**at, local_infile=True, client_flag=CLIENT.MULTI_STATEMENTS)
    common(connection, pymysql.err.MySQLError)
    cursor = connection.cursor()
    cursor.execute(f"SELECT {MARK} 1; SELECT id FROM act LIMIT 2; SET @a = 1; SELECT 3")
    rows(cursor)
    while cursor.nextset():
        rows(cursor)
    cursor.execute(f"CALL {MARK} two_results()")
    rows(cursor)
    while cursor.nextset():
        rows(cursor)
    stream = connection.cursor(pymysql.cursors.SSCursor)
    stream.execute(f"SELECT {MARK} * FROM act ORDER BY id")
    rows(stream)
    stream.close()
    file = Path(directory) / "act.csv"
    file.write_text("".join(f"{number},of a file\n" for number in range(300, 400)))
    load = f"LOAD DATA {MARK} LOCAL INFILE '%s' INTO TABLE act FIELDS TERMINATED BY ',' (id, name)"
    cursor.execute(load % file)
    (Path(directory) / "empty").write_text("")
    cursor.execute(load % (Path(directory) / "empty"))
    fails(Exception, lambda: cursor.execute("LOAD DATA LOCAL INFILE '/no/such' INTO TABLE act"))
    seen["errors"] -= 1  # the program's own
    cursor.execute(f"SELECT {MARK} COUNT(*) FROM act")
    rows(cursor)
    connection.ping()
    connection.select_db(at["database"])
    connection.close()


def connector_program(at, directory, **options):
    import mysql.connector

    connection = mysql.connector.connect(**at, allow_local_infile=True, **options)
    common(connection, mysql.connector.Error)
    prepared = connection.cursor(prepared=True)
    for number in range(4):
        # Its reader of binary values does not take all types.
        columns = "id, name, price, at, day, ratio, big, small, body, NULL"
        prepared.execute(f"SELECT {MARK} {columns} FROM act WHERE id <= %s ORDER BY id", (number,))
        rows(prepared)
    prepared.execute(f"UPDATE {MARK} act SET body = %s WHERE id = %s", (b"long" * 50000, 1))
    fails(mysql.connector.Error, lambda: prepared.execute(f"INSERT {MARK} INTO act (id) VALUES (%s)", (1,)))
    prepared.close()
    connection.commit()
    cursor = connection.cursor(buffered=True)
    cursor.execute(f"SELECT {MARK} body FROM act WHERE id = 1")
    rows(cursor)
    cursor.close()
    connection.cmd_ping()
    connection.cmd_init_db(at["database"])
    connection.cmd_statistics()
    if "compress" not in options:  # which it cannot do together
        connection.cmd_reset_connection()
        connection.cmd_change_user(at["user"], at["password"], at["database"])
    cursor = connection.cursor()
    cursor.execute(f"SELECT {MARK} 1")
    rows(cursor)
    connection.close()


PROGRAMS = {
    "pymysql": pymysql_program,
    "connector": lambda at, directory: connector_program(at, directory, use_pure=True),
    "connector-compressed": lambda at, directory: connector_program(at, directory, use_pure=True, compress=True),
}

if __name__ == "__main__":
    driver, host, port, user, password, database, directory = sys.argv[1:]
    plain = {} if driver == "pymysql" else {"ssl_disabled": True}
    at = {"host": host, "port": int(port), "user": user, "password": password, "database": database} | plain
    PROGRAMS[driver](at, directory)
    print(json.dumps(seen))
