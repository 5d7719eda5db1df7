import type { StatusName } from '../rpc/status.ts'
import { apiStatus } from '../wire/api-status.ts'

/** A problem in a configuration, with its position. */
export interface Issue {
  /** The document, as shown to users: `v1alpha1`, `HostnameConfig`, `VolumeConfig "EPHEMERAL"`. */
  document?: string
  /** Dotted path inside the document: `machine.network.interfaces[0].mtu`. */
  path?: string
  /** Counted from 1, in the whole file. */
  line?: number
  column?: number
  message: string
}

/** One line for users: position, then problem. */
export function formatIssue({ document, path, line, column, message }: Issue): string {
  const place = [line === undefined ? '' : `line ${line}, column ${column}`, document ? `document ${document}` : '']
    .filter(Boolean)
    .join(', ')
  return [place, path, message].filter(Boolean).join(': ')
}

/** An invalid configuration, with all its problems in order of position. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  constructor(readonly issues: readonly Issue[]) {
    super(issues.map(formatIssue).join('\n'))
  }

  get [apiStatus](): StatusName {
    return 'InvalidArgument'
  }
}
