import type { ServiceDefinition } from '../../../supervise/definition.ts'
import { containerdProbe } from '../../../supervise/probe.ts'
import { program } from '../../../supervise/runner/program.ts'
import type { Machine } from '../../area.ts'
import { systemDaemon } from '../daemons.ts'
import { verificationPart } from '../parts.ts'
import { programEnvironment } from '../service-environment.ts'

const folder = '/system/run/containerd'
const configFile = `${folder}/config.toml`

/** Plugins for pods and for other machines, which the system's daemon does not need. */
const plugins = `disabled_plugins = [
  "io.containerd.cri.v1.images",
  "io.containerd.cri.v1.runtime",
  "io.containerd.grpc.v1.cri",
  "io.containerd.podsandbox.controller.v1.podsandbox",
  "io.containerd.nri.v1.nri",
  "io.containerd.snapshotter.v1.blockfile",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.erofs",
  "io.containerd.snapshotter.v1.zfs",
  "io.containerd.tracing.processor.v1.otlp",
  "io.containerd.internal.v1.tracing",
]
`

/** The daemon that runs the system's own containers. */
export const containerdService = ({ kernel: { files }, spawn }: Machine): ServiceDefinition => ({
  id: 'containerd',
  dependsOn: [],
  async prepare() {
    files.mkdirAll(folder, { mode: 0o711 })
    files.mkdirAll('/system/var/lib/containerd', { mode: 0o700 })
    await files.writeAtomic(configFile, plugins + verificationPart, { mode: 0o600 })
  },
  runner: program(
    ({ store }) => ({
      argv: [
        '/usr/bin/containerd',
        '--address',
        systemDaemon.address,
        '--state',
        folder,
        '--root',
        '/system/var/lib/containerd',
        '--config',
        configFile,
      ],
      env: programEnvironment(store),
    }),
    spawn,
  ),
  health: { check: containerdProbe(systemDaemon, 'system') },
  restart: 'always',
  oom: -999,
  cgroup: '/system/runtime',
  domain: 'sys_containerd_t',
})
