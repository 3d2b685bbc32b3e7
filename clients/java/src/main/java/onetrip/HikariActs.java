package onetrip;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.sql.Connection;
import java.util.LinkedHashMap;
import java.util.Map;
import onetrip.Acts.Act;

/** HikariCP over pgjdbc, with a pool of one connection. */
final class HikariActs {
  /** Longer than the 500 ms after which the pool tests an idle connection. */
  private static final long IDLE_MS = 700;

  @FunctionalInterface
  interface Work {
    void on(HikariDataSource pool) throws Exception;
  }

  private HikariActs() {}

  static Map<String, Act> all() {
    Map<String, Act> acts = new LinkedHashMap<>();
    acts.put("connect", pooled(true, pool -> pool.getConnection().close()));
    acts.put("select_1", pooled(true, borrow(JdbcActs.selects(1, 1))));
    acts.put("select_after_idle", pooled(true, pool -> {
      borrow(JdbcActs.selects(1, 1)).on(pool);
      Thread.sleep(IDLE_MS);
      borrow(JdbcActs.selects(1, 1)).on(pool);
    }));
    acts.put("txn_1", pooled(false, borrow(JdbcActs.inTransaction(JdbcActs.selects(1, 1)))));
    acts.put("txn_2", pooled(false, borrow(JdbcActs.inTransaction(JdbcActs.selects(2, 1)))));
    acts.put("pool_checkin", pooled(false, borrow(JdbcActs.selects(1, 1))));
    acts.put("bad_OT011", () -> {
      // Tests the connection at every checkout, not only after 500 ms of idleness; with 0 it
      // would skip those within one millisecond.
      System.setProperty("com.zaxxer.hikari.aliveBypassWindowMs", "-1");
      pooled(true, tenTimes(JdbcPatterns::countAuthors)).run();
    });
    acts.put("fixed_OT011", pooled(true, tenTimes(JdbcPatterns::countAuthors)));
    acts.put("bad_OT016", pooled(false, tenTimes(JdbcPatterns::twoReads)));
    acts.put("fixed_OT016", pooled(true, tenTimes(JdbcPatterns::twoReads)));
    return acts;
  }

  private static Work borrow(JdbcActs.Work work) {
    return pool -> {
      try (Connection connection = pool.getConnection()) {
        work.on(connection);
      }
    };
  }

  private static Work tenTimes(JdbcActs.Work work) {
    return pool -> {
      for (int i = 0; i < 10; i++) {
        borrow(work).on(pool);
      }
    };
  }

  private static Act pooled(boolean autoCommit, Work work) {
    return () -> {
      HikariConfig config = new HikariConfig();
      config.setJdbcUrl(Acts.url());
      config.setDataSourceProperties(Acts.login());
      config.setMaximumPoolSize(1);
      config.setAutoCommit(autoCommit);
      try (HikariDataSource pool = new HikariDataSource(config)) {
        work.on(pool);
      }
    };
  }
}
