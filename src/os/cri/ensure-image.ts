/** Makes sure that a service's image is there before it is needed. */

import { formatReference, parseReference } from '../../oci/reference.ts'
import { imageContents, pullImage } from '../../supervise/containerd/images.ts'
import type { Life } from '../../supervise/definition.ts'
import { credentialsOf } from './credentials.ts'
import { criDaemon, hostsFolder } from './daemons.ts'
import { RegistryConfig } from './resources/registry-config.ts'

/** A reference in the full form that containerd knows images by. Throws ImageReferenceError. */
export const fullReference = (reference: string): string => formatReference(parseReference(reference))

/** Pulls the image into namespace `system` unless it is there, unpacked. */
export async function ensureImage(reference: string, { store, signal, note }: Pick<Life, 'store' | 'signal' | 'note'>): Promise<void> {
  const name = fullReference(reference)
  const channel = criDaemon.in('system')
  if (await imageContents(channel, name)) return
  note(`Pulling image "${name}"`)
  const registries = store.get(RegistryConfig, 'registries')?.spec
  await pullImage(channel, name, { hostsDir: hostsFolder, credentials: credentialsOf(registries?.auths), signal })
}
