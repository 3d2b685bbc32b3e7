"""A long text is written and read in parts, and a large object along with it; neither side holds them whole."""

import onetrip
from onetrip import LobColumn

BODY = LobColumn.of("page", "body", key="id", prefetch=20)  # characters that come along

with onetrip.connect(lob_prefetch=0) as connection:  # of all others, their lengths
    connection.execute("CREATE TEMP TABLE page (id int PRIMARY KEY, body text, picture oid)")
    picture = connection.create_large_object(bytes(5_000_000))
    connection.execute("INSERT INTO page VALUES (1, '', %s)", (picture,))
    with connection.large_value_writer(BODY, 1) as writer:
        for number in range(100_000):
            writer.write(f"Zeile {number} ist länger als nötig.\n")

    cursor = connection.execute("SELECT id AS body, picture FROM page")
    before = connection.trips
    for body, picture in cursor.fetch_lobs({"body": BODY, "picture": None}):
        print(body.read(20), picture.length, connection.trips - before)  # one trip for both
        body.seek(3_000_000)
        print(body.read(80).splitlines()[1])
    connection.rollback()
