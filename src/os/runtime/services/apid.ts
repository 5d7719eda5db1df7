import { maskedPaths } from '../../../supervise/containerd/spec.ts'
import type { Runner, ServiceDefinition } from '../../../supervise/definition.ts'
import { tcpProbe } from '../../../supervise/probe.ts'
import { program } from '../../../supervise/runner/program.ts'
import { splitHostPort } from '../../../wire/host-port.ts'
import type { Machine } from '../../area.ts'
import { bindMount, daemonEnvironment, hiddenMounts, serviceContainer, systemDaemon, systemRoot } from '../../cri/public.ts'
import { APIServiceConfig } from '../resources/api-service-config.ts'

const uid = 50
const port = 50000

/** Sockets of apid's view of the store and of machined: apid reaches nothing else on its node. */
const sockets = ['/system/run/apid', '/system/run/machined']

/** Milliseconds in which a machine has usually named its devices and looked for its configuration. */
const usualStart = 30_000

/**
 * apid: terminates TLS, authenticates callers, and forwards requests. It starts before its certificates and its address
 * exist, because the start of its process takes seconds on a slow machine, and listens once they do.
 */
export const apidService = (machine: Machine): ServiceDefinition => ({
  id: 'apid',
  // A machine of its own answers before its containerd does.
  dependsOn: machine.kernel.mode === 'container' ? ['containerd'] : [],
  outlivedBy: ['containerd'],
  async prepare() {
    for (const folder of sockets) machine.kernel.files.mkdirAll(folder)
  },
  runner(context) {
    const start = machine.kernel.mode === 'container' || machine.apidPlace.isContainable() ? inContainer(machine) : asProcess(machine)
    return start(context)
  },
  health: {
    async check(signal) {
      const config = machine.store.get(APIServiceConfig, 'api')?.spec
      if (!config) throw new Error('its certificates and address are not there yet')
      // In maintenance it may listen in the network of the management server alone.
      await tcpProbe(splitHostPort(config.listenAddress, port).host || '127.0.0.1', port)(signal)
    },
    initialDelay: usualStart,
  },
  restart: 'always',
  oom: -998,
  cgroup: '/system/apid',
  domain: 'apid_t',
  stopTimeout: 15_000,
  operator: ['restart'],
})

const inContainer = (machine: Machine): Runner =>
  serviceContainer(machine, systemDaemon, systemRoot, ({ definition, store }) => ({
    args: ['/usr/bin/apid'],
    env: daemonEnvironment(store, definition.cgroup),
    uid,
    readonlyRoot: true,
    mounts: [...hiddenMounts, ...sockets.map((folder) => bindMount(folder)), ...namesMounts(machine)],
  }))

/** As confined as the container, but without its own process namespace: used while there is no containerd. */
const asProcess = ({ spawn }: Machine): Runner =>
  program(
    ({ definition, store }) => ({
      argv: ['/usr/bin/apid'],
      env: variables(daemonEnvironment(store, definition.cgroup)),
      uid,
      confined: true,
      view: {
        hide: [...hiddenMounts.map(({ destination }) => destination), '/dev', '/var', ...maskedPaths],
        show: [...devices, ...sockets],
      },
    }),
    spawn,
  )

/** The devices that user-space programs expect in /dev. */
const devices = ['null', 'zero', 'full', 'random', 'urandom'].map((name) => `/dev/${name}`)

const variables = (words: readonly string[]) =>
  Object.fromEntries(words.map((word) => [word.slice(0, word.indexOf('=')), word.slice(word.indexOf('=') + 1)]))

/** The generated files for name resolution, and the trusted authorities, that exist in /etc by now. */
function namesMounts({ kernel }: Machine) {
  return ['/etc/hosts', '/etc/resolv.conf', '/etc/ssl'].filter((path) => kernel.mount.mountAt(path)).map((path) => bindMount(path))
}
