import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

import org.opensearch.analysis.common.CommonAnalysisPlugin;
import org.opensearch.cluster.service.ClusterService;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.http.HttpServerTransport;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.transport.Netty4Plugin;

/**
 * One OpenSearch node from the libraries on the class path, without a distribution.
 *
 * <p>Started with a folder for its data. Prints its address once it answers, and ends when its input does, so that
 * it never outlives whoever started it. What the server's own main class would check (the user, the limits of the
 * operating system, the security manager) is left out: this node is for tests.
 */
final class OsNode extends Node {
    private OsNode(Environment environment) {
        super(environment, List.of(Netty4Plugin.class, CommonAnalysisPlugin.class), true);
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream address = System.out;
        System.setOut(System.err); // where the log goes by default
        try (OsNode node = new OsNode(environment(Path.of(arguments[0])))) {
            node.start();
            HttpServerTransport http = node.injector().getInstance(HttpServerTransport.class);
            address.println("http://" + http.boundAddress().publishAddress());
            while (System.in.read() != -1) {
                continue;
            }
        }
    }

    private static Environment environment(Path home) throws IOException {
        for (String folder : List.of("config", "modules", "plugins")) {
            Files.createDirectories(home.resolve(folder));
        }
        Settings settings = Settings.builder()
            .put("path.home", home)
            .put("cluster.name", "tests")
            .put("discovery.type", "single-node")
            .put("network.host", "127.0.0.1")
            .put("http.port", 0)
            .put("transport.port", 0)
            // A disk that is nearly full must not stop the tests.
            .put("cluster.routing.allocation.disk.threshold_enabled", false)
            // An index that nobody made has no mapping of ours.
            .put("action.auto_create_index", false)
            .build();
        return InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), home.resolve("config"), () -> "node");
    }

    /** The server keeps the node's id in its log's pattern, which a default log does not have. */
    @Override
    protected void configureNodeAndClusterIdStateListener(ClusterService clusterService) {}
}
