/** Whether a name for a certificate is an IP address: those go into another list than DNS names. */
export function isAddress(name: string): boolean {
  return name.includes(':') || /^\d+(\.\d+){3}$/.test(name)
}
