package onetrip;

import static onetrip.Acts.ACCOUNT_IDS;
import static onetrip.Acts.LOOP_COUNT;
import static onetrip.Acts.TABLE_ROWS;
import static onetrip.Acts.WALK_ROWS;
import static onetrip.Acts.WRITE_ROWS;
import static onetrip.Acts.expect;
import static onetrip.Acts.messages;
import static onetrip.JdbcActs.booksOfEach;
import static onetrip.JdbcActs.connected;
import static onetrip.JdbcActs.inTransaction;
import static onetrip.JdbcActs.insertBatch;
import static onetrip.JdbcActs.selects;
import static onetrip.JdbcActs.walk;
import static onetrip.JdbcPatterns.tenTimes;
import static onetrip.JdbcPatterns.value;
import static onetrip.JdbcPatterns.write;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.HashMap;
import java.util.Map;
import onetrip.Acts.Act;
import onetrip.JdbcActs.Work;

/** Both Connector/J: what JDBC does with any driver, and what their settings change. */
final class MysqlActs {
  private static final Map<String, String> LOCAL_STATE = Map.of("useLocalSessionState", "true");
  private static final Map<String, String> REWRITING = Map.of("rewriteBatchedStatements", "true");
  private static final Map<String, String> PREPARING =
      Map.of("useServerPrepStmts", "true", "cachePrepStmts", "false");
  private static final Map<String, String> PREPARING_ONCE =
      Map.of("useServerPrepStmts", "true", "cachePrepStmts", "true");
  private static final Map<String, String> CURSORS = Map.of("useCursorFetch", "true");
  private static final Map<String, String> NO_PIPELINE = Map.of("disablePipeline", "true");
  private static final Map<String, String> UNTIMED = Map.of("netTimeoutForStreamingResults", "0");

  private MysqlActs() {}

  /** MariaDB Connector/J pipelines: the statements of a batch, PREPARE and EXECUTE. */
  static Map<String, Act> ofMariadb() {
    Map<String, Act> acts = ofBoth();
    acts.put("stream_50", connected(inTransaction(walk(10, WALK_ROWS))));
    Map<String, String> unbulked =
        Map.of("useBulkStmtsForInserts", "false", "disablePipeline", "true");
    acts.put("batch_3_rewritten", connected(
        Map.of("rewriteBatchedStatements", "true", "useBulkStmtsForInserts", "false"),
        inTransaction(connection -> insertBatch(connection, 3))));
    acts.put("batch_3_unbulked", connected(Map.of("useBulkStmtsForInserts", "false"),
        inTransaction(connection -> insertBatch(connection, 3))));
    acts.put("batch_3_unpipelined",
        connected(unbulked, inTransaction(connection -> insertBatch(connection, 3))));
    acts.put("batch_update_20_bulked",
        connected(Map.of("useBulkStmts", "true"), inTransaction(JdbcActs::updateBatch)));
    acts.put("batch_update_20_unpipelined",
        connected(NO_PIPELINE, inTransaction(JdbcActs::updateBatch)));
    acts.put("server_prepared_3_unpipelined", connected(unpipelined(PREPARING), selects(3, 7)));
    acts.put("bad_OT007", connected(unpipelined(PREPARING), selects(LOOP_COUNT, 7)));
    acts.put("fixed_OT007", connected(unpipelined(PREPARING_ONCE), selects(LOOP_COUNT, 7)));
    acts.put("trap_pipelined_prepare", connected(PREPARING, MysqlActs::chain));
    acts.put("trap_pipelined_batch", connected(JdbcActs::updateBatch));
    acts.put("trap_streamed", connected(inTransaction(walk(10, TABLE_ROWS))));
    return acts;
  }

  /** MySQL Connector/J waits for each answer, and asks for variables when it connects. */
  static Map<String, Act> ofMysql() {
    Map<String, Act> acts = ofBoth();
    acts.put("connect_2", () -> connectTwice(Map.of()));
    acts.put("connect_2_cached", () -> connectTwice(Map.of("cacheServerConfiguration", "true")));
    acts.put("stream_50", connected(inTransaction(walk(Integer.MIN_VALUE, WALK_ROWS))));
    acts.put("stream_50_untimed",
        connected(UNTIMED, inTransaction(walk(Integer.MIN_VALUE, WALK_ROWS))));
    acts.put("batch_3_rewritten",
        connected(REWRITING, inTransaction(connection -> insertBatch(connection, 3))));
    acts.put("cursor_50_by_10", connected(CURSORS, inTransaction(walk(10, WALK_ROWS))));
    acts.put("txn_empty_local",
        connected(Map.of("useLocalTransactionState", "true"), inTransaction(connection -> {})));
    acts.put("max_rows_2", connected(connection -> {
      fiveAuthors(connection);
      selects(1, 1).on(connection);
    }));
    acts.put("fixed_OT002", connected(REWRITING,
        inTransaction(connection -> insertBatch(connection, WRITE_ROWS))));
    acts.put("fixed_OT002_update", connected(REWRITING, inTransaction(JdbcActs::updateBatch)));
    acts.put("bad_OT002_batch",
        connected(inTransaction(connection -> insertBatch(connection, WRITE_ROWS))));
    acts.put("fixed_OT003", acts.get("fixed_OT002"));
    acts.put("bad_OT004", connected(CURSORS, inTransaction(walk(10, TABLE_ROWS))));
    acts.put("fixed_OT004", connected(CURSORS, inTransaction(walk(1000, TABLE_ROWS))));
    acts.put("bad_OT007", connected(PREPARING, selects(LOOP_COUNT, 7)));
    acts.put("fixed_OT007", connected(PREPARING_ONCE, selects(LOOP_COUNT, 7)));
    acts.put("bad_OT011_isolation", connected(tenTimes(MysqlActs::setIsolationFirst)));
    acts.put("fixed_OT011_isolation",
        connected(LOCAL_STATE, tenTimes(MysqlActs::setIsolationFirst)));
    acts.put("bad_OT011_max_rows", connected(tenTimes(MysqlActs::fiveAuthorsOfBoth)));
    acts.put("fixed_OT011_max_rows", connected(tenTimes(MysqlActs::fiveAuthorsByLimit)));
    acts.put("trap_streamed", connected(UNTIMED, walk(Integer.MIN_VALUE, TABLE_ROWS)));
    acts.put("trap_rewritten_batch", connected(
        Map.of("rewriteBatchedStatements", "true", "allowMultiQueries", "true"),
        JdbcActs::updateBatch));
    return acts;
  }

  private static Map<String, Act> ofBoth() {
    Map<String, Act> acts = JdbcActs.shared();
    addCosts(acts);
    acts.put("bad_OT006_toggled", connected(MysqlActs::tenToggled));
    acts.put("bad_OT011_set", connected(tenTimes(MysqlActs::setTimeZoneFirst)));
    acts.put("fixed_OT011_set", connected(Map.of("sessionVariables", "time_zone='+00:00'"),
        tenTimes(JdbcPatterns::countAuthors)));
    acts.put("fixed_OT013", connected(inTransaction(MysqlActs::updateEach)));
    acts.put("trap_chain", connected(MysqlActs::chain));
    acts.put("trap_two_of_each", connected(booksOfEach(2)));
    return acts;
  }

  private static void addCosts(Map<String, Act> acts) {
    Map<String, Act> pooled = HikariActs.all();
    acts.put("pool_start", pooled.get("connect"));
    acts.put("pool_txn_1", pooled.get("txn_1"));
    acts.put("pool_checkin", pooled.get("pool_checkin"));
    acts.put("pool_select_after_idle", pooled.get("select_after_idle"));
    acts.put("txn_1_toggled", connected(toggled(selects(1, 1))));
    acts.put("set_autocommit_same", connected(connection -> connection.setAutoCommit(true)));
    acts.put("set_autocommit_same_local",
        connected(LOCAL_STATE, connection -> connection.setAutoCommit(true)));
    acts.put("set_isolation_same_3", connected(MysqlActs::setIsolationThrice));
    acts.put("set_isolation_same_3_local",
        connected(LOCAL_STATE, MysqlActs::setIsolationThrice));
    acts.put("get_isolation_local", connected(LOCAL_STATE, connection ->
        expect(connection.getTransactionIsolation(), Acts.database.defaultIsolation())));
    acts.put("set_read_only", connected(connection -> connection.setReadOnly(true)));
    acts.put("set_catalog_same",
        connected(connection -> connection.setCatalog(connection.getCatalog())));
    acts.put("warnings_none", connected(connection -> warnings(connection, "SELECT 1", false)));
    acts.put("warnings_1", connected(connection -> warnings(connection, "SELECT 1 / 0", true)));
    acts.put("generated_keys_3", connected(MysqlActs::generatedKeys));
    acts.put("batch_update_20", connected(inTransaction(JdbcActs::updateBatch)));
    acts.put("batch_update_20_rewritten",
        connected(REWRITING, inTransaction(JdbcActs::updateBatch)));
    acts.put("server_prepared_3", connected(PREPARING, selects(3, 7)));
    acts.put("server_prepared_3_cached", connected(PREPARING_ONCE, selects(3, 7)));
  }

  private static Map<String, String> unpipelined(Map<String, String> settings) {
    Map<String, String> both = new HashMap<>(settings);
    both.putAll(NO_PIPELINE);
    return both;
  }

  /** What transaction managers do with a connection of a pool. */
  private static Work toggled(Work work) {
    return connection -> {
      inTransaction(work).on(connection);
      connection.setAutoCommit(true);
    };
  }

  private static void tenToggled(Connection connection) throws SQLException {
    for (int number = 1; number <= 10; number++) {
      int id = number * 7;
      toggled(one -> JdbcActs.select(one, id)).on(connection);
    }
  }

  private static void connectTwice(Map<String, String> settings) throws SQLException {
    Acts.connect(settings).close();
    Acts.connect(settings).close();
  }

  /** To what it is already. */
  private static void setIsolation(Connection connection) throws SQLException {
    connection.setTransactionIsolation(Acts.database.defaultIsolation());
  }

  private static void setIsolationThrice(Connection connection) throws SQLException {
    for (int i = 0; i < 3; i++) {
      setIsolation(connection);
    }
  }

  private static void setTimeZoneFirst(Connection connection) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      statement.execute("SET time_zone = '+00:00'");
    }
    JdbcPatterns.countAuthors(connection);
  }

  private static void setIsolationFirst(Connection connection) throws SQLException {
    setIsolation(connection);
    JdbcPatterns.countAuthors(connection);
  }

  private static void warnings(Connection connection, String query, boolean wanted)
      throws SQLException {
    try (Statement statement = connection.createStatement()) {
      statement.executeQuery(query).close();
      expect(statement.getWarnings() != null, wanted);
    }
  }

  private static void generatedKeys(Connection connection) throws SQLException {
    String insert = "INSERT INTO log (message) VALUES (?)";
    try (PreparedStatement statement =
        connection.prepareStatement(insert, Statement.RETURN_GENERATED_KEYS)) {
      for (String text : messages(3)) {
        statement.setString(1, text);
        statement.executeUpdate();
        try (ResultSet keys = statement.getGeneratedKeys()) {
          expect(keys.next(), true);
        }
      }
    }
  }

  /** The driver limits rows by SQL_SELECT_LIMIT, and takes the limit back before the next query. */
  private static void fiveAuthors(Connection connection) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      statement.setMaxRows(5);
      expectRows(statement, "SELECT name FROM authors", 5);
    }
  }

  private static void fiveAuthorsOfBoth(Connection connection) throws SQLException {
    fiveAuthors(connection);
    JdbcPatterns.countAuthors(connection);
  }

  private static void fiveAuthorsByLimit(Connection connection) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      expectRows(statement, "SELECT name FROM authors LIMIT 5", 5);
    }
    JdbcPatterns.countAuthors(connection);
  }

  private static void expectRows(Statement statement, String query, int wanted)
      throws SQLException {
    int count = 0;
    try (ResultSet rows = statement.executeQuery(query)) {
      while (rows.next()) {
        count++;
      }
    }
    expect(count, wanted);
  }

  private static void updateEach(Connection connection) throws SQLException {
    for (int id : ACCOUNT_IDS) {
      write(connection, "UPDATE accounts SET balance = balance + ? WHERE id = ?", 1, id);
    }
  }

  /** Each answer names the next question. */
  private static void chain(Connection connection) throws SQLException {
    int number = 713;
    for (int i = 0; i < LOOP_COUNT; i++) {
      number = (Integer) value(connection, "SELECT next FROM links WHERE id = ?", number);
    }
    expect(number, 713);
  }
}
