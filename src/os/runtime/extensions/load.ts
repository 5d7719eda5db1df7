/** The services that the extensions of the image bring. */
import type { Logger } from '../../../cosi/log.ts'
import type { Kernel } from '../../kernel.ts'
import { type ExtensionService, parseExtensionService, ServiceSpecError } from './service-spec.ts'

const folder = '/usr/local/etc/containers'
const limit = 256 << 10

/** What the ids of services of extensions begin with. */
export const extensionPrefix = 'ext-'

/** The id of a service of an extension. */
export const extensionServiceId = (name: string): string => `${extensionPrefix}${name}`

/** All specifications of the image. One that cannot be used is logged, and the others are not affected. */
export function loadExtensionServices(
  { files }: { readonly files: Pick<Kernel['files'], 'exists' | 'list' | 'readText'> },
  log: Pick<Logger, 'warn'>,
): ExtensionService[] {
  if (!files.exists(folder)) return []
  const found = new Map<string, ExtensionService>()
  for (const name of files.list(folder).sort()) {
    if (!name.endsWith('.yaml')) continue
    const path = `${folder}/${name}`
    try {
      const service = parseExtensionService(files.readText(path, { limit }))
      if (found.has(service.name)) throw new ServiceSpecError(`another specification has the name "${service.name}"`)
      found.set(service.name, service)
    } catch (error) {
      log.warn('specification of an extension service not used', { path, error })
    }
  }
  return [...found.values()]
}
