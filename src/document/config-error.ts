/** One thing that is wrong with a configuration, and where. */
export interface Issue {
  /** The document, as users call it: `v1alpha1`, `HostnameConfig`, `VolumeConfig "EPHEMERAL"`. */
  document?: string
  /** Dotted path inside the document: `machine.network.interfaces[0].mtu`. */
  path?: string
  /** Counted from 1, in the whole text. */
  line?: number
  column?: number
  message: string
}

/** One line for people: where, then what. */
export function formatIssue({ document, path, line, column, message }: Issue): string {
  const place = [line === undefined ? '' : `line ${line}, column ${column}`, document ? `document ${document}` : '']
    .filter(Boolean)
    .join(', ')
  return [place, path, message].filter(Boolean).join(': ')
}

/** A configuration that cannot be used: everything that is wrong with it, in the order of the text. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  constructor(readonly issues: readonly Issue[]) {
    super(issues.map(formatIssue).join('\n'))
  }
}
