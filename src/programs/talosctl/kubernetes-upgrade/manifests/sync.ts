/** The manifests as the last step of an upgrade or a rollback. */
import { within } from '../../machine/within.ts'
import type { StepContext } from '../operations.ts'
import type { Step } from '../steps.ts'
import { type ApplyManifestOptions, applyManifests } from './apply.ts'
import type { InventoryPolicy } from './policy.ts'
import { checkRendered, readManifests } from './read.ts'

/** The flags about manifests. */
export interface ManifestFlags {
  readonly manifestsForce: boolean
  readonly manifestsInventoryPolicy: InventoryPolicy
  readonly manifestsPrune: boolean
  /** Milliseconds. */
  readonly manifestsReconcileTimeout: number
}

/** How the flags have manifests applied. */
export const manifestOptions = (flags: ManifestFlags): ApplyManifestOptions => ({
  policy: flags.manifestsInventoryPolicy,
  force: flags.manifestsForce,
  prune: flags.manifestsPrune,
  settleTimeout: flags.manifestsReconcileTimeout,
})

/** The image that the steps give kube-proxy, which nodes run as their manifests say. */
export const proxyImageOf = (steps: readonly Step[]): string | undefined =>
  steps.find(({ component }) => component === 'kube-proxy')?.running

/** Brings the objects of the cluster to what a control plane renders from its configuration, as soon as that has this image. */
export async function syncManifests(
  { io, cluster, kubernetes, timeout, report }: StepContext,
  node: string,
  proxyImage: string | undefined,
  flags: ManifestFlags,
): Promise<void> {
  const manifests = await within(io, timeout, 'the manifests are rendered', async () => {
    const objects = await readManifests(cluster, node)
    checkRendered(objects, proxyImage)
    return objects
  })
  report('updating the manifests')
  await applyManifests(io, kubernetes, manifests, manifestOptions(flags))
}
