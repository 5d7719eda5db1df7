/** Whether a certificate name is an IP address; certificates list those apart from DNS names. */
export function isAddress(name: string): boolean {
  return name.includes(':') || /^\d+(\.\d+){3}$/.test(name)
}
