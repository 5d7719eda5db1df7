import type { ServiceDefinition, StoreView } from '../../../supervise/definition.ts'
import { tcpProbe } from '../../../supervise/probe.ts'
import { splitHostPort } from '../../../wire/host-port.ts'
import type { Machine } from '../../area.ts'
import { bindMount, daemonEnvironment, hiddenMounts, serviceContainer, systemDaemon, systemRoot } from '../../cri/public.ts'
import { ApiCertificate } from '../../secrets/resources/api-certificate.ts'
import { MetricsEndpoint } from '../resources/metrics-endpoint.ts'

const uid = 52

/** The socket of metricsd's view of the system, and the declaration of its endpoint. */
const folder = '/system/run/metricsd'
const endpointFile = `${folder}/endpoint.json`

function wait(store: StoreView): string[] {
  const certificates = store.get(ApiCertificate, 'api')?.spec.server ? [] : ['api certificates']
  return [...certificates, ...(store.get(MetricsEndpoint, 'metrics') ? [] : ['an endpoint to be declared'])]
}

/** metricsd: serves metrics to Prometheus, apart from init and apid, so that a scrape can disturb neither. */
export const metricsdService = (machine: Machine): ServiceDefinition => ({
  id: 'metricsd',
  dependsOn: ['containerd'],
  wait,
  async prepare({ store }) {
    machine.kernel.files.mkdirAll(folder)
    const spec = store.get(MetricsEndpoint, 'metrics')?.spec
    if (!spec) throw new Error('the endpoint of metrics is not declared any more')
    await machine.kernel.files.writeAtomic(endpointFile, JSON.stringify(spec), { mode: 0o400, uid, gid: uid })
  },
  runner: serviceContainer(machine, systemDaemon, systemRoot, ({ definition, store }) => ({
    args: ['/usr/bin/metricsd'],
    env: daemonEnvironment(store, definition.cgroup),
    uid,
    readonlyRoot: true,
    mounts: [...hiddenMounts, bindMount(folder)],
  })),
  health: { check: (signal) => tcpProbe(...reachedAt(machine))(signal) },
  restart: 'always',
  oom: -400,
  cgroup: '/system/metricsd',
  domain: 'metricsd_t',
  stopTimeout: 5_000,
  operator: ['restart'],
})

/** The address at which this node itself reaches the endpoint. */
function reachedAt({ store }: Pick<Machine, 'store'>): [string, number] {
  const { host, port } = splitHostPort(store.get(MetricsEndpoint, 'metrics')?.spec.listen ?? '', 0)
  return [host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host, port]
}
