/**
 * A file's mode as Go writes it: the upper bits are Go's own (directory 1<<31 … irregular 1<<19), the lower nine are
 * the permissions.
 */
const letters = 'dalTLDpSugct?'

/** The mode as text: "drwxr-xr-x", "Lrwxrwxrwx", "dtrwxrwxrwx". */
export function modeText(mode: number): string {
  const kind = [...letters].filter((_, index) => (mode >>> (31 - index)) & 1).join('')
  const permissions = [...'rwxrwxrwx'].map((letter, index) => ((mode >>> (8 - index)) & 1 ? letter : '-')).join('')
  return (kind || '-') + permissions
}

/** Whether the mode is a directory's. */
export function isDirectory(mode: number): boolean {
  return mode >>> 31 === 1
}
