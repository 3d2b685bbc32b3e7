import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;

/** The work of `fetch` in MySQL's Connector/J, and that of `batch` in MariaDB's, which sends a batch in one packet. */
public final class MysqlLab {
    private interface Work {
        /** Plays a round and returns the rows that were read. */
        long round() throws SQLException;
    }

    public static void main(String[] arguments) throws IOException, SQLException {
        String server = System.getenv("MYSQL_HOST") + ":" + System.getenv("MYSQL_TCP_PORT") + "/lab";
        boolean isFetch = arguments[0].equals("fetch");
        String url = isFetch
            ? "jdbc:mysql://" + server + "?sslMode=DISABLED&useCursorFetch=true"
            : "jdbc:mariadb://" + server + "?useServerPrepStmts=true&useBulkStmts=true&disablePipeline=true";
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        try (Connection connection = DriverManager.getConnection(url, "root", "");
                PreparedStatement statement = connection.prepareStatement(
                    isFetch
                        ? "SELECT id, note FROM items ORDER BY id"
                        : "UPDATE accounts SET balance = ?, note = ? WHERE id = ?")) {
            Work work = isFetch ? fetch(statement, arguments) : batch(connection, statement, arguments);
            while (lines.readLine() != null) {
                long began = System.nanoTime();
                long used = cpu();
                long rows = work.round();
                System.out.printf("{\"rows\": %d, \"ns\": %d, \"cpu_ns\": %d}%n", rows, System.nanoTime() - began, cpu() - used);
            }
        }
    }

    /** `fetch PIECE`. */
    private static Work fetch(PreparedStatement select, String[] arguments) throws SQLException {
        select.setFetchSize(Integer.parseInt(arguments[1]));
        return () -> {
            long rows = 0;
            try (ResultSet found = select.executeQuery()) {
                while (found.next()) {
                    found.getString(2);
                    rows++;
                }
            }
            return rows;
        };
    }

    /** `batch ROWS EACH each|one`. */
    private static Work batch(Connection connection, PreparedStatement update, String[] arguments) throws SQLException {
        int rows = Integer.parseInt(arguments[1]);
        int each = Integer.parseInt(arguments[2]);
        boolean isOne = arguments[3].equals("one");
        connection.setAutoCommit(!isOne);
        return () -> {
            for (int id = 1; id <= rows; id++) {
                update.setLong(1, id);
                update.setString(2, "note " + id);
                update.setInt(3, id);
                update.addBatch();
                if (id % each == 0) {
                    update.executeBatch();
                }
            }
            if (isOne) {
                connection.commit();
            }
            return 0;
        };
    }

    /** CPU time of all threads, in nanoseconds. */
    private static long cpu() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }
}
