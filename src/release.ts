import { version } from '../package.json'

declare const ichorCommit: string | undefined
declare const ichorBuilt: string | undefined
declare const ichorKubernetes: string | undefined
declare const ichorCoreDNS: string | undefined

/** The release of Kubernetes inside, as in `1.36.3`; a build may set another one (rootfs/build/kubernetes.ts). */
export const kubernetesInside: string = typeof ichorKubernetes === 'string' ? ichorKubernetes : '1.36.3'

/** The release of CoreDNS beside it. */
export const coreDNSInside: string = typeof ichorCoreDNS === 'string' ? ichorCoreDNS : '1.14.7'

/** Name and version of this binary; the build sets commit and build time. */
export const release = {
  name: 'Ichor',
  tag: `v${version}`,
  sha: typeof ichorCommit === 'string' ? ichorCommit : 'undefined',
  built: typeof ichorBuilt === 'string' ? ichorBuilt : '',
  runtime: `bun${Bun.version}`,
  os: process.platform,
  arch: process.arch === 'x64' ? 'amd64' : process.arch,
}

/** The file of the container image for a processor, as mkimage.sh leaves it. */
export const nodeImageFile = (arch: string): string => `ichor-node-${arch}.tar`

/** The container image of the system: `ichor-node:v1.13.100`, which mkimage.sh leaves in `file` for this machine's processor. */
export const nodeImage = { repository: 'ichor-node', tag: release.tag, file: nodeImageFile(release.arch) } as const
