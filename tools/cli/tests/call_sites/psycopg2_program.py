import os

import psycopg2
import psycopg2.extras


def titles(cursor, author):
    cursor.execute("SELECT title FROM book WHERE author_id = %s", (author,))  # OT001
    return cursor.fetchall()


def loop():
    connection = psycopg2.connect("")
    cursor = connection.cursor()
    cursor.execute("SELECT id FROM author ORDER BY id")
    for (author,) in cursor.fetchall():
        titles(cursor, author)
    connection.commit()
    with connection.cursor("pieces") as pieces:
        pieces.itersize = 10
        pieces.execute("SELECT id FROM book ORDER BY id")
        for _ in pieces:  # OT004
            pass
    connection.commit()
    for note in range(20):
        cursor.execute("INSERT INTO note (body) VALUES (%s)", (f"note {note}",))  # OT002
    connection.commit()
    connection.close()


def classes():
    """Connections and cursors are of the classes that the program asks for."""
    connection = psycopg2.connect("", connection_factory=psycopg2.extras.DictConnection)
    cursor = connection.cursor()
    cursor.execute("SELECT 1 AS one")
    assert cursor.fetchone()["one"] == 1
    assert isinstance(cursor, psycopg2.extras.DictCursor) and isinstance(connection, psycopg2.extras.DictConnection)
    connection.close()
    with psycopg2.connect("", cursor_factory=psycopg2.extras.RealDictCursor) as connection:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 2 AS two")
            assert cursor.fetchone() == {"two": 2}
        with connection.cursor(cursor_factory=psycopg2.extras.NamedTupleCursor) as cursor:
            cursor.execute("SELECT 3 AS three")
            assert cursor.fetchone().three == 3
    connection.close()


loop()
classes()
if os.fork() == 0:
    loop()
    os._exit(0)
os.wait()
