import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.io.Writer;
import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import org.apache.derby.drda.NetworkServerControl;

/** Derby's network server on a port of this machine: tells its version and what its threads have allocated for each line that it reads. */
public final class DerbyServer {
    public static void main(String[] arguments) throws Exception {
        NetworkServerControl control = new NetworkServerControl(InetAddress.getByName("127.0.0.1"), Integer.parseInt(arguments[0]));
        control.start(new PrintWriter(Writer.nullWriter()));
        waitFor(control);
        String version = control.getSysinfo().lines().filter(line -> line.contains("derbynet")).findFirst().orElse("").trim();
        version = version.replaceAll(".*derbynet[^ ]* *(- )?", "").replace("\"", "");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        while (lines.readLine() != null) {
            System.out.printf("{\"version\": \"Apache Derby %s, Java %s\", \"allocated\": %d}%n", version, Runtime.version(), allocated());
        }
        System.exit(0);
    }

    private static void waitFor(NetworkServerControl control) throws Exception {
        for (int turn = 0; ; turn++) {
            try {
                control.ping();
                return;
            } catch (Exception error) {
                if (turn > 600) {
                    throw error;
                }
                Thread.sleep(50);
            }
        }
    }

    /** Of all threads but this one, which talks. */
    private static long allocated() {
        var threads = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        long self = Thread.currentThread().getId();
        long bytes = 0;
        for (long id : threads.getAllThreadIds()) {
            bytes += id == self ? 0 : Math.max(0, threads.getThreadAllocatedBytes(id));
        }
        return bytes;
    }
}
