import { release } from '../../../release.ts'
import { UsageError } from '../failure.ts'

/** Refuses to write for machines of another minor version than this one knows. */
export function checkVersion(version: string | undefined): void {
  if (version === undefined || version === '') return
  const match = /^v?(\d+)\.(\d+)(\.\d.*)?$/.exec(version)
  const own = release.tag.replace(/^v/, '').split('.').slice(0, 2).join('.')
  if (!match) throw new UsageError(`"${version}" is not a version: use one like "v${own}"`)
  if (`${match[1]}.${match[2]}` !== own) throw new UsageError(`this program writes configurations for v${own}, not for "${version}"`)
}
