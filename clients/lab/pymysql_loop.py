"""The loop of the workload `loop` in PyMySQL: a list of employees, then a statement for the salaries of each.

pymysql_loop.py EMPLOYEES SESSION: a round for each line of the input, with MariaDB at MYSQL_HOST and MYSQL_TCP_PORT.
"""

from __future__ import annotations

import os
import sys

import pymysql
from lab import Round, turns


def main() -> None:
    employees = int(sys.argv[1])
    connection = pymysql.connect(
        host=os.environ["MYSQL_HOST"], port=int(os.environ["MYSQL_TCP_PORT"]), user="root", database="lab", autocommit=True
    )
    with connection, connection.cursor() as cursor:
        for _ in turns():
            with Round() as played:
                cursor.execute("SELECT emp_no, name FROM employees ORDER BY emp_no")
                listed = cursor.fetchall()
                played.rows += len(listed)
                for number, _ in listed[:employees]:
                    cursor.execute("SELECT emp_no, year, salary FROM salaries WHERE emp_no = %s ORDER BY year", (number,))
                    played.rows += len(cursor.fetchall())


if __name__ == "__main__":
    main()
