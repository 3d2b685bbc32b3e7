import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** The lab's values from Derby's client, a thread for each session: DerbyLab number|characters N SESSIONS PROGRAM. */
public final class DerbyLab {
    public static void main(String[] arguments) throws Exception {
        boolean number = arguments[0].equals("number");
        int count = Integer.parseInt(arguments[1]);
        int sessions = Integer.parseInt(arguments[2]);
        String text = number ? "VALUES (1)" : "VALUES CAST('" + "x".repeat(100) + "' AS VARCHAR(100))";
        String url = "jdbc:derby://" + System.getenv("PGHOST") + ":" + System.getenv("PGPORT") + "/memory:lab;create=true";
        List<Callable<Long>> work = new ArrayList<>();
        for (int session = 0; session < sessions; session++) {
            Connection connection = DriverManager.getConnection(url);
            PreparedStatement statement = connection.prepareStatement(text);
            work.add(() -> read(statement, number, count));
        }
        ExecutorService threads = Executors.newFixedThreadPool(sessions);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        while (lines.readLine() != null) {
            long began = System.nanoTime();
            long used = cpu();
            long rows = 0;
            for (Future<Long> done : threads.invokeAll(work)) {
                rows += done.get();
            }
            System.out.printf("{\"rows\": %d, \"ns\": %d, \"cpu_ns\": %d}%n", rows, System.nanoTime() - began, cpu() - used);
        }
        System.exit(0);
    }

    private static long read(PreparedStatement statement, boolean number, int count) throws Exception {
        long rows = 0;
        for (int n = 0; n < count; n++) {
            try (ResultSet found = statement.executeQuery()) {
                while (found.next()) {
                    rows += number ? found.getInt(1) : found.getString(1).length() / 100;
                }
            }
        }
        return rows;
    }

    private static long cpu() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }
}
