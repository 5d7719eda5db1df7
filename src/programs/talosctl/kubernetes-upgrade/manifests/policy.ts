/** Which objects an upgrade may change: those of its inventory, and others as far as the policy allows. */
import { inventoryAnnotation, inventoryName } from '../../../../kube/inventory.ts'
import type { KubeObject } from '../../../../kube/object.ts'

export const inventoryPolicies = ['MustMatch', 'AdoptIfNoInventory', 'AdoptAll'] as const

export type InventoryPolicy = (typeof inventoryPolicies)[number]

const ownerOf = ({ metadata }: KubeObject): string | undefined => metadata.annotations?.[inventoryAnnotation]

/** Why an object of the cluster is not changed or removed; undefined if it may be. */
export function refusal(live: KubeObject, policy: InventoryPolicy): string | undefined {
  const owner = ownerOf(live)
  if (owner === inventoryName || policy === 'AdoptAll') return undefined
  if (owner !== undefined) return `it belongs to the inventory "${owner}": take it over with --manifests-inventory-policy=AdoptAll`
  if (policy === 'AdoptIfNoInventory') return undefined
  return 'it belongs to no inventory: take it over with --manifests-inventory-policy=AdoptIfNoInventory'
}

/** Why a manifest is not applied; undefined if it may be. */
export function refusedManifest(object: KubeObject): string | undefined {
  const owner = ownerOf(object)
  if (owner === undefined || owner === inventoryName) return undefined
  return `its manifest names the inventory "${owner}"`
}
