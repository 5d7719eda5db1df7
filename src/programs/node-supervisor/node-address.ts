/** The hardware address of a node, the same whenever it is started. */
export function macOf(ip: string): string {
  return ['02', '1c', ...ip.split('.').map((part) => Number(part).toString(16).padStart(2, '0'))].join(':')
}
