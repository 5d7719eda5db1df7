/** Pressure stall information of a resource, for "some" and for "full": shares of time in percent, and a total in microseconds. */
export interface PressureLine {
  readonly avg10: number
  readonly avg60: number
  readonly avg300: number
  readonly total: number
}

/** What a pressure file has; processors have no "full" in older kernels. */
export interface Pressure {
  readonly some?: PressureLine
  readonly full?: PressureLine
}

const form = /^(some|full) avg10=([\d.]+) avg60=([\d.]+) avg300=([\d.]+) total=(\d+)$/gm

/** Parses a pressure file of the kernel (Documentation/accounting/psi.rst); lines of another form are left out. */
export function parsePressure(text: string): Pressure {
  const lines = [...text.matchAll(form)].map(([, kind, ...numbers]) => {
    const [avg10 = 0, avg60 = 0, avg300 = 0, total = 0] = numbers.map(Number)
    return [kind, { avg10, avg60, avg300, total }] as const
  })
  return Object.fromEntries(lines)
}
