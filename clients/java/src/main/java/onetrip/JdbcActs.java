package onetrip;

import static onetrip.Acts.ACCOUNT_IDS;
import static onetrip.Acts.AUTHOR_COUNT;
import static onetrip.Acts.BOOKS_PER_AUTHOR;
import static onetrip.Acts.LOOP_COUNT;
import static onetrip.Acts.TABLE_ROWS;
import static onetrip.Acts.WALK_ROWS;
import static onetrip.Acts.WRITE_ROWS;
import static onetrip.Acts.expect;
import static onetrip.Acts.messages;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import onetrip.Acts.Act;

/**
 * pgjdbc: BEGIN rides with the first statement; Parse, Bind and Execute leave together. What JDBC
 * does with any driver is {@link #shared}.
 */
final class JdbcActs {
  private static final String AUTHORS = "SELECT id, name FROM authors ORDER BY id";
  private static final String BOOKS_OF =
      "SELECT title, price FROM books WHERE author_id = ? ORDER BY id";
  private static final String INSERT_LOG = "INSERT INTO log (message) VALUES (?)";
  private static final String UPDATE_ACCOUNT =
      "UPDATE accounts SET balance = balance + ? WHERE id = ?";
  static final String SELECT_VALUE = "SELECT v FROM t WHERE id = ?";

  @FunctionalInterface
  interface Work {
    void on(Connection connection) throws SQLException;
  }

  private JdbcActs() {}

  static Map<String, Act> all() {
    Map<String, Act> acts = shared();
    acts.put("get_schema", connected(connection -> expect(connection.getSchema(), "public")));
    acts.put("array_param", connected(JdbcActs::arrayParameter));
    acts.put("cursor_50_by_10", connected(inTransaction(walk(10, WALK_ROWS))));
    acts.put("bad_OT004", connected(inTransaction(walk(10, TABLE_ROWS))));
    acts.put("fixed_OT004", connected(inTransaction(walk(1000, TABLE_ROWS))));
    JdbcPatterns.addOfPostgres(acts);
    return acts;
  }

  /** Acts that are the same with any driver and database. */
  static Map<String, Act> shared() {
    Map<String, Act> acts = new LinkedHashMap<>();
    addCosts(acts);
    addFindings(acts);
    JdbcPatterns.addTo(acts);
    return acts;
  }

  private static void addCosts(Map<String, Act> acts) {
    acts.put("connect", connected(connection -> {}));
    acts.put("select_1", connected(selects(1, 1)));
    acts.put("select_2", connected(selects(2, 1)));
    acts.put("select_6", connected(selects(6, 1)));
    acts.put("prepared_6", connected(JdbcActs::preparedSix));
    acts.put("txn_1", connected(inTransaction(selects(1, 1))));
    acts.put("txn_2", connected(inTransaction(selects(2, 1))));
    acts.put("txn_empty", connected(inTransaction(connection -> {})));
    acts.put("ping", connected(connection -> expect(connection.isValid(5), true)));
    acts.put("set_autocommit", connected(connection -> {
      connection.setAutoCommit(false);
      connection.setAutoCommit(true);
    }));
    acts.put("set_isolation", connected(connection ->
        connection.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE)));
    acts.put("get_isolation", connected(connection ->
        expect(connection.getTransactionIsolation(), Acts.database.defaultIsolation())));
    acts.put("batch_3", connected(inTransaction(connection -> insertBatch(connection, 3))));
    acts.put("savepoint", connected(inTransaction(JdbcActs::savepoint)));
    acts.put("n_plus_one_10", connected(inTransaction(booksOfEach(LOOP_COUNT))));
  }

  private static void addFindings(Map<String, Act> acts) {
    acts.put("bad_OT001", connected(booksOfEach(AUTHOR_COUNT)));
    acts.put("fixed_OT001", connected(JdbcActs::booksOfAll));
    acts.put("bad_OT002", connected(inTransaction(JdbcActs::insertEach)));
    acts.put("bad_OT002_update", connected(inTransaction(JdbcActs::updateEach)));
    acts.put("fixed_OT002",
        connected(inTransaction(connection -> insertBatch(connection, WRITE_ROWS))));
    acts.put("fixed_OT002_update", connected(inTransaction(JdbcActs::updateBatch)));
    acts.put("bad_OT003", connected(JdbcActs::insertEach));
    acts.put("fixed_OT003",
        connected(inTransaction(connection -> insertBatch(connection, WRITE_ROWS))));
    acts.put("bad_OT005", connected(inTransaction(repeat(10))));
    acts.put("fixed_OT005", connected(inTransaction(repeat(1))));
    acts.put("bad_OT006", connected(JdbcActs::tenTransactions));
    acts.put("fixed_OT006", connected(selects(10, 7)));
    acts.put("bad_OT008", JdbcActs::tenConnections);
    acts.put("fixed_OT008", connected(selects(10, 7)));
  }

  static Act connected(Work work) {
    return connected(Map.of(), work);
  }

  /** With settings of the driver. */
  static Act connected(Map<String, String> settings, Work work) {
    return () -> {
      try (Connection connection = Acts.connect(settings)) {
        work.on(connection);
      }
    };
  }

  static Work inTransaction(Work work) {
    return connection -> {
      connection.setAutoCommit(false);
      work.on(connection);
      connection.commit();
    };
  }

  static void select(Connection connection, int id) throws SQLException {
    try (PreparedStatement statement = connection.prepareStatement(SELECT_VALUE)) {
      expectValue(statement, id);
    }
  }

  static void expectValue(PreparedStatement statement, int id) throws SQLException {
    statement.setInt(1, id);
    try (ResultSet rows = statement.executeQuery()) {
      expect(rows.next(), true);
      expect(rows.getString(1), "value " + id);
    }
  }

  /** Asks for the ids step, 2 * step, ... one by one. */
  static Work selects(int count, int step) {
    return connection -> {
      for (int number = 1; number <= count; number++) {
        select(connection, number * step);
      }
    };
  }

  static void preparedSix(Connection connection) throws SQLException {
    try (PreparedStatement statement = connection.prepareStatement(SELECT_VALUE)) {
      for (int number = 1; number <= 6; number++) {
        expectValue(statement, number);
      }
    }
  }

  private static void savepoint(Connection connection) throws SQLException {
    Savepoint savepoint = connection.setSavepoint("one");
    connection.releaseSavepoint(savepoint);
  }

  private static void arrayParameter(Connection connection) throws SQLException {
    expect(countRowsOf(connection, "SELECT id FROM authors WHERE id", List.of(101, 105, 112)), 3);
  }

  /** Rows of a query whose last column is one of these values. */
  static int countRowsOf(Connection connection, String query, List<Integer> values)
      throws SQLException {
    String whole = query + Acts.database.isOneOf(values.size());
    try (PreparedStatement statement = connection.prepareStatement(whole)) {
      Acts.database.bind(statement, values);
      return countRows(statement);
    }
  }

  private static int countRows(PreparedStatement statement) throws SQLException {
    try (ResultSet rows = statement.executeQuery()) {
      int count = 0;
      while (rows.next()) {
        count++;
      }
      return count;
    }
  }

  static Work walk(int fetchSize, int rowCount) {
    return connection -> {
      String query = "SELECT id, v FROM t WHERE id <= ? ORDER BY id";
      try (PreparedStatement statement = connection.prepareStatement(query)) {
        statement.setFetchSize(fetchSize);
        statement.setInt(1, rowCount);
        expect(countRows(statement), rowCount);
      }
    };
  }

  private static List<Integer> authors(Connection connection, int limit) throws SQLException {
    List<Integer> ids = new ArrayList<>();
    try (PreparedStatement statement = connection.prepareStatement(AUTHORS + " LIMIT " + limit);
        ResultSet rows = statement.executeQuery()) {
      while (rows.next()) {
        ids.add(rows.getInt(1));
      }
    }
    return ids;
  }

  static Work booksOfEach(int limit) {
    return connection -> {
      for (int id : authors(connection, limit)) {
        try (PreparedStatement statement = connection.prepareStatement(BOOKS_OF)) {
          statement.setInt(1, id);
          expect(countRows(statement), BOOKS_PER_AUTHOR);
        }
      }
    };
  }

  private static void booksOfAll(Connection connection) throws SQLException {
    int count = countRowsOf(connection, "SELECT title FROM books WHERE author_id",
        authors(connection, AUTHOR_COUNT));
    expect(count, AUTHOR_COUNT * BOOKS_PER_AUTHOR);
  }

  static void insertEach(Connection connection) throws SQLException {
    try (PreparedStatement statement = connection.prepareStatement(INSERT_LOG)) {
      for (String text : messages(WRITE_ROWS)) {
        statement.setString(1, text);
        statement.executeUpdate();
      }
    }
  }

  static void insertBatch(Connection connection, int count) throws SQLException {
    try (PreparedStatement statement = connection.prepareStatement(INSERT_LOG)) {
      for (String text : messages(count)) {
        statement.setString(1, text);
        statement.addBatch();
      }
      expect(statement.executeBatch().length, count);
    }
  }

  private static void updateEach(Connection connection) throws SQLException {
    try (PreparedStatement statement = connection.prepareStatement(UPDATE_ACCOUNT)) {
      for (int id : ACCOUNT_IDS) {
        statement.setInt(1, 1);
        statement.setInt(2, id);
        expect(statement.executeUpdate(), 1);
      }
    }
  }

  static void updateBatch(Connection connection) throws SQLException {
    try (PreparedStatement statement = connection.prepareStatement(UPDATE_ACCOUNT)) {
      for (int id : ACCOUNT_IDS) {
        statement.setInt(1, 1);
        statement.setInt(2, id);
        statement.addBatch();
      }
      expect(statement.executeBatch().length, WRITE_ROWS);
    }
  }

  private static Work repeat(int times) {
    return connection -> {
      for (int i = 0; i < times; i++) {
        String query = "SELECT name FROM authors WHERE id = ?";
        try (PreparedStatement statement = connection.prepareStatement(query)) {
          statement.setInt(1, 140);
          expect(countRows(statement), 1);
        }
      }
    };
  }

  private static void tenTransactions(Connection connection) throws SQLException {
    for (int number = 1; number <= 10; number++) {
      int id = number * 7;
      inTransaction(one -> select(one, id)).on(connection);
    }
  }

  private static void tenConnections() throws SQLException {
    for (int number = 1; number <= 10; number++) {
      try (Connection connection = Acts.connect()) {
        select(connection, number * 7);
      }
    }
  }
}
