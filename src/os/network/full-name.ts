/** Splits a full name into hostname and domain name, as the kernel keeps them. */
export function splitName(name: string): { hostname: string; domainname: string } {
  const dot = name.indexOf('.')
  return dot < 0 ? { hostname: name, domainname: '' } : { hostname: name.slice(0, dot), domainname: name.slice(dot + 1) }
}
