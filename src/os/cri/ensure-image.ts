import { imageContents, pullImage } from '../../supervise/containerd/images.ts'
import type { RunContext } from '../../supervise/definition.ts'
import { credentialsOf } from './credentials.ts'
import { criDaemon, hostsFolder } from './daemons.ts'
import { fullReference, type OwnImages } from './image-table.ts'
import { RegistryConfig } from './resources/registry-config.ts'

/** Makes a service's image available in namespace `system`: from the root file system, else pulled unless present. */
export async function ensureImage(
  images: Pick<OwnImages, 'provide'>,
  reference: string,
  { store, signal, note }: Pick<RunContext, 'store' | 'signal' | 'note'>,
): Promise<void> {
  if (await images.provide(reference, 'system')) return
  const name = fullReference(reference)
  const channel = criDaemon.in('system')
  if (await imageContents(channel, name)) return
  note(`Pulling image "${name}"`)
  const registries = store.get(RegistryConfig, 'registries')?.spec
  await pullImage(channel, name, { hostsDir: hostsFolder, credentials: credentialsOf(registries?.auths), signal })
}
