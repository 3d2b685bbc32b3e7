package onetrip;

import static onetrip.Acts.ACCOUNT_IDS;
import static onetrip.Acts.AUTHOR_COUNT;
import static onetrip.Acts.FILE_CONTENT;
import static onetrip.Acts.FILE_IDS;
import static onetrip.Acts.FILE_PORTION;
import static onetrip.Acts.PAGE_AUTHORS;
import static onetrip.Acts.WRITE_ROWS;
import static onetrip.Acts.expect;
import static onetrip.Acts.messages;
import static onetrip.Acts.unseen;
import static onetrip.JdbcActs.connected;
import static onetrip.JdbcActs.countRowsOf;
import static onetrip.JdbcActs.inTransaction;

import java.io.ByteArrayOutputStream;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.List;
import java.util.Map;
import onetrip.Acts.Act;
import org.postgresql.PGConnection;
import org.postgresql.largeobject.LargeObject;
import org.postgresql.largeobject.LargeObjectManager;

/** Findings from OT009 on, shown with JDBC; some of them only PostgreSQL and pgjdbc can have. */
final class JdbcPatterns {
  private static final String COUNT_AUTHORS = "SELECT count(*) FROM authors";
  private static final List<String> AUTHOR_PAGE = List.of(
      "SELECT name FROM authors WHERE id = ?",
      "SELECT title FROM books WHERE author_id = ? ORDER BY id",
      "SELECT max(price) FROM books WHERE author_id = ?");

  private JdbcPatterns() {}

  static void addTo(Map<String, Act> acts) {
    acts.put("bad_OT009", connected(JdbcPatterns::balanceOfEach));
    acts.put("fixed_OT009", connected(JdbcPatterns::balanceOfAll));
    acts.put("bad_OT011", connected(tenTimes(JdbcPatterns::testFirst)));
    acts.put("fixed_OT011", connected(tenTimes(JdbcPatterns::countAuthors)));
    acts.put("bad_OT012", connected(JdbcPatterns::pagesByThree));
    acts.put("fixed_OT012", connected(JdbcPatterns::pagesByOne));
    acts.put("bad_OT013", connected(inTransaction(JdbcPatterns::readThenWrite)));
    acts.put("bad_OT015", connected(inTransaction(JdbcPatterns::lookUpThenInsert)));
    acts.put("fixed_OT015", connected(inTransaction(JdbcPatterns::insertUnlessThere)));
    acts.put("bad_OT016", connected(tenTimes(JdbcPatterns::readThenRollBack)));
    acts.put("fixed_OT016", connected(tenTimes(JdbcPatterns::twoReads)));
  }

  static void addOfPostgres(Map<String, Act> acts) {
    acts.put("bad_OT010", connected(inTransaction(JdbcPatterns::readByPortions)));
    acts.put("fixed_OT010", connected(inTransaction(JdbcPatterns::readWhole)));
    acts.put("bad_OT011_set", connected(tenTimes(JdbcPatterns::setSchemaFirst)));
    acts.put("fixed_OT011_set", connected(JdbcPatterns::setSchemaOnce));
    acts.put("fixed_OT013", connected(inTransaction(JdbcPatterns::writeReturning)));
    acts.put("bad_OT014", connected(inTransaction(JdbcPatterns::nextvalEach)));
    acts.put("fixed_OT014", connected(inTransaction(JdbcPatterns::insertReturning)));
  }

  static JdbcActs.Work tenTimes(JdbcActs.Work work) {
    return connection -> {
      for (int i = 0; i < 10; i++) {
        work.on(connection);
      }
    };
  }

  /** The first column of the first row, or null where there is none. */
  static Object value(Connection connection, String query, Object... parameters)
      throws SQLException {
    try (PreparedStatement statement = connection.prepareStatement(query)) {
      for (int i = 0; i < parameters.length; i++) {
        statement.setObject(i + 1, parameters[i]);
      }
      try (ResultSet rows = statement.executeQuery()) {
        return rows.next() ? rows.getObject(1) : null;
      }
    }
  }

  static void write(Connection connection, String text, Object... parameters)
      throws SQLException {
    try (PreparedStatement statement = connection.prepareStatement(text)) {
      for (int i = 0; i < parameters.length; i++) {
        statement.setObject(i + 1, parameters[i]);
      }
      expect(statement.executeUpdate(), 1);
    }
  }

  private static void balanceOfEach(Connection connection) throws SQLException {
    for (int id : ACCOUNT_IDS.subList(0, 12)) {
      expect(value(connection, "SELECT balance FROM accounts WHERE id = ?", id) != null, true);
    }
  }

  private static void balanceOfAll(Connection connection) throws SQLException {
    List<Integer> ids = ACCOUNT_IDS.subList(0, 12);
    expect(countRowsOf(connection, "SELECT id, balance FROM accounts WHERE id", ids), 12);
  }

  private static void readByPortions(Connection connection) throws SQLException {
    LargeObjectManager objects = connection.unwrap(PGConnection.class).getLargeObjectAPI();
    for (int id : FILE_IDS) {
      long content = (Long) value(connection, "SELECT content FROM files WHERE id = ?", id);
      ByteArrayOutputStream read = new ByteArrayOutputStream();
      LargeObject object = objects.open(content, LargeObjectManager.READ);
      while (read.size() < FILE_CONTENT.length) {
        read.writeBytes(object.read(FILE_PORTION));
      }
      object.close();
      expect(read.toString(), new String(FILE_CONTENT));
    }
  }

  private static void readWhole(Connection connection) throws SQLException {
    for (int id : FILE_IDS) {
      Object read = value(connection, "SELECT lo_get(content) FROM files WHERE id = ?", id);
      expect(((byte[]) read).length, FILE_CONTENT.length);
    }
  }

  /** What a pool does that is told to test its connections before each use. */
  private static void testFirst(Connection connection) throws SQLException {
    expect(connection.isValid(5), true);
    countAuthors(connection);
  }

  static void countAuthors(Connection connection) throws SQLException {
    expect(value(connection, COUNT_AUTHORS), (long) AUTHOR_COUNT);
  }

  /** What a program of many tenants does whose schema is set for each request. */
  private static void setSchemaFirst(Connection connection) throws SQLException {
    connection.setSchema("public");
    countAuthors(connection);
  }

  private static void setSchemaOnce(Connection connection) throws SQLException {
    connection.setSchema("public");
    tenTimes(JdbcPatterns::countAuthors).on(connection);
  }

  private static void pagesByThree(Connection connection) throws SQLException {
    for (int author : PAGE_AUTHORS) {
      for (String query : AUTHOR_PAGE) {
        expect(value(connection, query, author) != null, true);
      }
    }
  }

  /** JDBC cannot pipeline reads: one statement asks for all three. */
  private static void pagesByOne(Connection connection) throws SQLException {
    for (int author : PAGE_AUTHORS) {
      expect(value(connection, Acts.database.authorPage(), author), "author " + author);
    }
  }

  private static void readThenWrite(Connection connection) throws SQLException {
    for (int id : ACCOUNT_IDS) {
      String query = "SELECT balance FROM accounts WHERE id = ? FOR UPDATE";
      int balance = (Integer) value(connection, query, id);
      write(connection, "UPDATE accounts SET balance = ? WHERE id = ?", balance + 1, id);
    }
  }

  private static void writeReturning(Connection connection) throws SQLException {
    for (int id : ACCOUNT_IDS) {
      String update =
          "UPDATE accounts SET balance = balance + ? WHERE id = ? RETURNING balance";
      expect(value(connection, update, 1, id) != null, true);
    }
  }

  private static void nextvalEach(Connection connection) throws SQLException {
    for (String text : messages(WRITE_ROWS)) {
      Object id = value(connection, "SELECT nextval('tickets_id_seq')");
      write(connection, "INSERT INTO tickets (id, note) VALUES (?, ?)", id, text);
    }
  }

  private static void insertReturning(Connection connection) throws SQLException {
    for (String text : messages(WRITE_ROWS)) {
      String insert = "INSERT INTO tickets (note) VALUES (?) RETURNING id";
      expect(value(connection, insert, text) != null, true);
    }
  }

  private static void lookUpThenInsert(Connection connection) throws SQLException {
    for (String name : unseen()) {
      if (value(connection, "SELECT id FROM tags WHERE name = ?", name) == null) {
        write(connection, "INSERT INTO tags (name) VALUES (?)", name);
      }
    }
  }

  private static void insertUnlessThere(Connection connection) throws SQLException {
    for (String name : unseen()) {
      write(connection, Acts.database.insertTagUnlessThere(), name);
    }
  }

  private static void readThenRollBack(Connection connection) throws SQLException {
    connection.setAutoCommit(false);
    twoReads(connection);
    connection.rollback();
  }

  static void twoReads(Connection connection) throws SQLException {
    countAuthors(connection);
    expect(value(connection, "SELECT max(price) FROM books") != null, true);
  }
}
