import type { ServiceDefinition, StoreView } from '../../../supervise/definition.ts'
import { tcpProbe } from '../../../supervise/probe.ts'
import type { Machine } from '../../area.ts'
import { bindMount, daemonEnvironment, hiddenMounts, serviceContainer, systemDaemon, systemRoot } from '../../cri/public.ts'
import { networkConditions, timeConditions } from '../../network/public.ts'
import { trustdPort } from '../../trustd-port.ts'
import { TrustdCertificate } from '../resources/trustd-certificate.ts'

const uid = 51

/** The socket of trustd's restricted view of the store. */
const sockets = '/system/run/trustd'

function wait(store: StoreView): string[] {
  const certificates = store.get(TrustdCertificate, 'trustd') ? [] : ['trustd certificates']
  return [...timeConditions(store), ...networkConditions(store, ['address', 'hostname']), ...certificates]
}

/** trustd: signs the certificates of nodes that present the machine token. */
export const trustdService = (machine: Machine): ServiceDefinition => ({
  id: 'trustd',
  dependsOn: ['containerd'],
  wait,
  async prepare() {
    machine.kernel.files.mkdirAll(sockets)
  },
  runner: serviceContainer(machine, systemDaemon, systemRoot, ({ definition, store }) => ({
    args: ['/usr/bin/trustd'],
    env: daemonEnvironment(store, definition.cgroup),
    uid,
    readonlyRoot: true,
    mounts: [...hiddenMounts, bindMount(sockets)],
  })),
  health: { check: tcpProbe('127.0.0.1', trustdPort) },
  restart: 'always',
  oom: -998,
  cgroup: '/system/trustd',
  domain: 'trustd_t',
  stopTimeout: 15_000,
  operator: ['restart'],
})
