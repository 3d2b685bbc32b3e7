import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;

/**
 * The lab's work in pgjdbc: statement by statement, and with addBatch, which reorders it: first all inserts, then all
 * updates; of statements that the lab tells first all that return rows, which no batch takes, then the others.
 */
public final class Lab {
    public static void main(String[] arguments) throws IOException, SQLException {
        String workload = arguments[0];
        String mode = arguments[1];
        int count = Integer.parseInt(arguments[2]);
        int session = Integer.parseInt(arguments[3]);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        String url = "jdbc:postgresql://" + System.getenv("PGHOST") + ":" + System.getenv("PGPORT") + "/"
            + System.getenv("PGDATABASE") + "?sslmode=disable&prepareThreshold=1";
        try (Connection connection = DriverManager.getConnection(url, System.getenv("PGUSER"), System.getenv("PGPASSWORD"))) {
            Lab lab = new Lab(connection, count, session);
            if (workload.equals("pipeline-oltp")) {
                lab.listen(lines);
            }
            for (int turn = 0; lines.readLine() != null; turn++) {
                long began = System.nanoTime();
                long used = cpu();
                long rows = switch (workload) {
                    case "pipeline-read" -> lab.read();
                    case "pipeline-oltp" -> lab.play(mode.equals("batch"));
                    default -> lab.write(mode.equals("batch"), turn);
                };
                System.out.printf("{\"rows\": %d, \"ns\": %d, \"cpu_ns\": %d}%n", rows, System.nanoTime() - began, cpu() - used);
            }
        }
    }

    private final Connection connection;
    private final int count;
    private final int session;
    private final PreparedStatement select;
    private final PreparedStatement insert;
    private final PreparedStatement update;

    /** A statement that the lab tells; only those with values are prepared. */
    private record Told(String text, PreparedStatement prepared) {}

    private final List<Told> told = new ArrayList<>();

    private Lab(Connection connection, int count, int session) throws SQLException {
        this.connection = connection;
        this.count = count;
        this.session = session;
        select = connection.prepareStatement("SELECT id, note FROM items WHERE id = ?");
        insert = connection.prepareStatement("INSERT INTO orders VALUES (?, 0)");
        update = connection.prepareStatement("UPDATE stock SET quantity = quantity + 1 WHERE id = ?");
    }

    private long read() throws SQLException {
        long rows = 0;
        for (int n = 0; n < count; n++) {
            select.setInt(1, 1 + (int) ((n * 7919L + session * 131L) % 10000));
            try (ResultSet found = select.executeQuery()) {
                while (found.next()) {
                    found.getString(2);
                    rows++;
                }
            }
        }
        return rows;
    }

    private long write(boolean batch, int turn) throws SQLException {
        connection.setAutoCommit(false);
        for (int unit = 0; unit < count; unit++) {
            insert.setInt(1, session * 1_000_000 + turn * count + unit);
            run(insert, batch);
            for (int line = 0; line < 4; line++) {
                update.setInt(1, session * 100 + 1 + (unit * 4 + line) % 100);
                run(update, batch);
            }
        }
        if (batch) {
            insert.executeBatch();
            update.executeBatch();
        }
        connection.commit();
        return 0;
    }

    /** Reads what the lab tells first: a statement a line, its values behind tabs, up to an empty line. */
    private void listen(BufferedReader lines) throws IOException, SQLException {
        for (String line = lines.readLine(); line != null && !line.isEmpty(); line = lines.readLine()) {
            String[] words = line.split("\t");
            PreparedStatement prepared = null;
            if (words.length > 1) {
                prepared = connection.prepareStatement(words[0].replaceAll("\\$\\d+", "?"));
                for (int place = 1; place < words.length; place++) {
                    prepared.setInt(place, Integer.parseInt(words[place]));
                }
            }
            told.add(new Told(words[0], prepared));
        }
    }

    private long play(boolean batch) throws SQLException {
        long rows = 0;
        try (Statement plain = connection.createStatement()) {
            for (int turn = 0; turn < count; turn++) {
                for (Told statement : told) {
                    if (statement.prepared != null) {
                        rows += rowsOf(statement.prepared);
                    } else if (batch) {
                        plain.addBatch(statement.text);
                    } else {
                        plain.execute(statement.text);
                    }
                }
                if (batch) {
                    plain.executeBatch();
                }
            }
        }
        return rows;
    }

    private static long rowsOf(PreparedStatement statement) throws SQLException {
        long rows = 0;
        try (ResultSet found = statement.executeQuery()) {
            while (found.next()) {
                rows++;
            }
        }
        return rows;
    }

    private static void run(PreparedStatement statement, boolean batch) throws SQLException {
        if (batch) {
            statement.addBatch();
        } else {
            statement.executeUpdate();
        }
    }

    private static long cpu() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }
}
