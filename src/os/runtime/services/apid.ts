import type { ServiceDefinition, StoreView } from '../../../supervise/definition.ts'
import { tcpProbe } from '../../../supervise/probe.ts'
import type { Machine } from '../../area.ts'
import { systemDaemon } from '../../cri/daemons.ts'
import { bindMount, hiddenMounts, serviceContainer, systemRoot } from '../../cri/service-container.ts'
import { ApiCertificate } from '../../secrets/resources/api-certificate.ts'
import { daemonEnvironment } from '../daemon-environment.ts'
import { APIServiceConfig } from '../resources/api-service-config.ts'

const uid = 50
const port = 50000

/** Sockets of apid's view of the store and of machined: all that apid reaches on its node. */
const sockets = ['/system/run/apid', '/system/run/machined']

function wait(store: StoreView): string[] {
  const certificates = store.get(ApiCertificate, 'api') ? [] : ['api certificates']
  const config = store.get(APIServiceConfig, 'api') ? [] : ['config to be ready']
  return [...certificates, ...config]
}

/** The door of the node: ends TLS, knows who calls, and passes requests on. */
export const apidService = (machine: Machine): ServiceDefinition => ({
  id: 'apid',
  dependsOn: ['containerd'],
  wait,
  async prepare() {
    for (const folder of sockets) machine.kernel.files.mkdirAll(folder)
  },
  runner: serviceContainer(machine, systemDaemon, systemRoot, ({ definition }) => ({
    args: ['/usr/bin/apid'],
    env: daemonEnvironment(definition.cgroup),
    uid,
    readonlyRoot: true,
    mounts: [...hiddenMounts, ...sockets.map((folder) => bindMount(folder)), ...namesMounts(machine)],
  })),
  health: { check: tcpProbe('127.0.0.1', port) },
  restart: 'always',
  oom: -998,
  cgroup: '/system/apid',
  stopTimeout: 15_000,
  operator: ['restart'],
})

/** The generated files that names are resolved with, as far as they are shown in /etc by now. */
function namesMounts({ kernel }: Machine) {
  return ['/etc/hosts', '/etc/resolv.conf'].filter((path) => kernel.mount.mountAt(path)).map((path) => bindMount(path))
}
