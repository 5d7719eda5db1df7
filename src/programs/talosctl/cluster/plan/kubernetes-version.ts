import net from 'node:net'
import { defaultImages, kubernetesVersion } from '../../../../os/k8s/images.ts'
import { UsageError } from '../../failure.ts'

const supportedMinors = 6
const reachTimeout = 4_000

/** Refuses a version that is no version, too old or new, or neither inside the root file system nor to be had from a registry. */
export async function checkKubernetesVersion(version: string, mirrored: readonly string[], reach = canConnect): Promise<void> {
  if (version === kubernetesVersion) return
  const wanted = /^(\d+)\.(\d+)\.\d+(?:-[0-9a-z.]+)?$/.exec(version)
  if (!wanted) throw new UsageError(`--kubernetes-version "${version}": write a version such as ${kubernetesVersion}`)
  const [, major, minor] = wanted.map(Number)
  const newest = Number(kubernetesVersion.split('.')[1])
  if (major !== 1 || minor === undefined || minor > newest || minor <= newest - supportedMinors) {
    throw new UsageError(
      `--kubernetes-version "${version}": versions 1.${newest - supportedMinors + 1} to 1.${newest} are supported, ${kubernetesVersion} is inside`,
    )
  }
  const registries = [...new Set([defaultImages.kubelet, defaultImages.apiServer].map((reference) => reference.split('/')[0] ?? ''))]
  for (const registry of registries) {
    if (mirrored.includes(registry) || (await reach(registry))) continue
    throw new UsageError(
      `Kubernetes ${version} would be pulled from ${registry}, which does not answer: use ${kubernetesVersion}, which is inside, or name a mirror with --registry-mirror ${registry}=<url>`,
    )
  }
}

function canConnect(host: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect({ host, port: 443 })
    const done = (result: boolean) => {
      clearTimeout(timer)
      socket.destroy()
      resolve(result)
    }
    const timer = setTimeout(() => done(false), reachTimeout)
    socket.once('connect', () => done(true))
    socket.once('error', () => done(false))
  })
}
