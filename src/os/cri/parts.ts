/** The parts that make up the configuration of the pods' daemon. */

import type { SpecOf } from '../../cosi/resource.ts'
import { messageOf } from '../../wire/error-message.ts'
import { machineSocket } from '../machine-socket.ts'
import { hostsFolder } from './daemons.ts'
import type { RegistryConfig } from './resources/registry-config.ts'
import { formatToml, overlayToml, parseToml, type TomlTable } from './toml.ts'

const images = 'io.containerd.cri.v1.images'
const runtime = 'io.containerd.cri.v1.runtime'

/** The pause image, which holds a pod's namespaces open. */
export const sandboxImage = 'registry.k8s.io/pause:3.10.1'

/** The base configuration, which imports the other parts. */
export const mainFile = formatToml({
  version: 3,
  disabled_plugins: [
    'io.containerd.nri.v1.nri',
    'io.containerd.snapshotter.v1.blockfile',
    'io.containerd.snapshotter.v1.btrfs',
    'io.containerd.snapshotter.v1.devmapper',
    'io.containerd.snapshotter.v1.erofs',
    'io.containerd.snapshotter.v1.zfs',
    'io.containerd.internal.v1.tracing',
    'io.containerd.tracing.processor.v1.otlp',
  ],
  imports: ['/etc/cri/conf.d/cri.toml'],
})

/** Has the machine judge each image before its content is pulled, in the configuration of either daemon. */
export const verificationPart = formatToml({
  version: 3,
  plugins: { 'io.containerd.image-verifier.v1.machine': { socket: machineSocket } },
})

/** Capabilities of this node. */
export interface Abilities {
  /** OOM scores may be lowered. */
  readonly lowerOomScores: boolean
}

/** Pod runtime settings. */
export function basePart({ lowerOomScores }: Abilities): TomlTable {
  return {
    version: 3,
    plugins: {
      [images]: { snapshotter: 'overlayfs', pinned_images: { sandbox: sandboxImage }, registry: { config_path: hostsFolder } },
      [runtime]: {
        restrict_oom_score_adj: !lowerOomScores,
        containerd: {
          default_runtime_name: 'runc',
          runtimes: {
            runc: {
              runtime_type: 'io.containerd.runc.v2',
              base_runtime_spec: '/etc/cri/conf.d/base-spec.json',
              options: { SystemdCgroup: false },
            },
          },
        },
        cni: { bin_dirs: ['/opt/cni/bin', '/usr/libexec/cni'], conf_dir: '/etc/cni/net.d' },
      },
    },
  }
}

/** Registry credentials. */
export function registriesPart({ auths = {} }: SpecOf<typeof RegistryConfig>): string {
  const configs = Object.fromEntries(
    Object.entries(auths).map(([name, { username, password, auth, identityToken }]) => [
      name,
      { auth: { username, password, auth, identitytoken: identityToken } },
    ]),
  )
  return formatToml({
    version: 3,
    plugins: { [images]: { registry: { config_path: hostsFolder, ...(Object.keys(auths).length > 0 && { configs }) } } },
  })
}

/** All parts merged, later ones over earlier ones. Throws, naming the part, when one is not TOML. */
export function mergeParts(base: TomlTable, parts: readonly { name: string; text: string }[]): string {
  const merged = parts.reduce((under, { name, text }) => overlayToml(under, parsePart(name, text)), base)
  return formatToml(merged)
}

function parsePart(name: string, text: string): TomlTable {
  try {
    return parseToml(text)
  } catch (error) {
    throw new Error(`read "${name}": ${messageOf(error)}: correct the file in machine.files`)
  }
}
