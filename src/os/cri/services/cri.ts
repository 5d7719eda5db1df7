import type { ServiceDefinition, StoreView } from '../../../supervise/definition.ts'
import { containerdProbe } from '../../../supervise/probe.ts'
import { program } from '../../../supervise/runner/program.ts'
import type { Machine } from '../../area.ts'
import { mountId, VolumeMountStatus } from '../../block/resources/volume-mount.ts'
import { certificateBundle, EtcFileStatus } from '../../files/resources/etc-file.ts'
import type { Mode } from '../../kernel.ts'
import { networkConditions } from '../../network/public.ts'
import type { ConfigRead } from '../config-read.ts'
import { criDaemon } from '../daemons.ts'
import { programEnvironment } from '../service-environment.ts'

/** Everything the daemon reads at its start must be written. */
const configFiles = [
  ...['containerd.toml', 'conf.d/cri.toml', 'conf.d/base-spec.json', 'conf.d/hosts/_default/hosts.toml'].map((name) => `cri/${name}`),
  certificateBundle,
]

const wait =
  (mode: Mode) =>
  (store: StoreView): string[] => {
    const files = configFiles.filter((id) => !store.get(EtcFileStatus, id)).map((id) => `file "/etc/${id}" to be written`)
    // In a container the disk is mounted before init starts.
    const disk = mode === 'container' || store.get(VolumeMountStatus, mountId('EPHEMERAL')) ? [] : ['volume "EPHEMERAL" to be mounted']
    return [...networkConditions(store, ['address', 'hostname', 'etcfiles']), ...files, ...disk]
  }

/** The daemon that runs pods, etcd and the kubelet. */
export const criService = ({ kernel, spawn, images }: Machine, read: ConfigRead): ServiceDefinition => {
  const { mode, files } = kernel
  return {
    id: 'cri',
    dependsOn: [],
    wait: wait(mode),
    async prepare({ store }) {
      read.note(store)
      images.forget()
      files.mkdirAll('/run/containerd', { mode: 0o711 })
      files.mkdirAll('/var/lib/containerd', { mode: 0o000 })
      files.mkdirAll('/var/lib/cni', { mode: 0o700 })
      files.mkdirAll('/etc/cni/net.d', { mode: 0o755 })
      files.mkdirAll('/opt/cni/bin', { mode: 0o755 })
    },
    runner: program(
      ({ store }) => ({
        argv: ['/usr/bin/containerd', '--address', criDaemon.address, '--config', '/etc/cri/containerd.toml'],
        env: programEnvironment(store),
      }),
      spawn,
    ),
    health: {
      async check(signal) {
        await containerdProbe(criDaemon, 'k8s.io')(signal)
        // Not awaited here: the users of the images wait for them, and get the error.
        images.provided().catch(() => {})
      },
    },
    restart: 'always',
    oom: -500,
    cgroup: '/podruntime/runtime',
    domain: 'pod_containerd_t',
    operator: ['restart'],
  }
}
