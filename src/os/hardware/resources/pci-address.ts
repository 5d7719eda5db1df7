/** The address of a PCI device as the kernel writes it, `0000:04:00.0`; the function may have two digits. Undefined for anything else. */
export function pciAddress(text: string): string | undefined {
  const [, place, fn] = /^([\da-f]{4}:[\da-f]{2}:[01][\da-f]\.)0?([0-7])$/.exec(text.toLowerCase()) ?? []
  return place && fn && `${place}${fn}`
}
