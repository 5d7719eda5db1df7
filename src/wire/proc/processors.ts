import { lines } from './lines.ts'

/** One processor of /proc/cpuinfo; values that the machine does not report are 0, '' or empty. */
export interface Processor {
  processor: number
  vendorId: string
  cpuFamily: string
  model: string
  modelName: string
  stepping: string
  microcode: string
  cpuMhz: number
  cacheSize: string
  physicalId: string
  siblings: number
  coreId: string
  cpuCores: number
  apicId: string
  initialApicId: string
  fpu: string
  fpuException: string
  cpuIdLevel: number
  wp: string
  flags: string[]
  bugs: string[]
  bogoMips: number
  clFlushSize: number
  cacheAlignment: number
  addressSizes: string
  powerManagement: string
}

/** Parses /proc/cpuinfo of amd64 and arm64. */
export function parseCpuinfo(text: string): Processor[] {
  const found: Map<string, string>[] = []
  for (const { text: line } of lines('cpuinfo', text, 1 << 20)) {
    const colon = line.indexOf(':')
    if (colon < 0) continue
    const name = line.slice(0, colon).trim()
    if (name === 'processor') found.push(new Map())
    found.at(-1)?.set(name, line.slice(colon + 1).trim())
  }
  return found.map((entry) => {
    const word = (...names: string[]) => names.map((name) => entry.get(name)).find((value) => value !== undefined) ?? ''
    const number = (...names: string[]) => Number.parseFloat(word(...names)) || 0
    const list = (...names: string[]) =>
      word(...names)
        .split(' ')
        .filter(Boolean)
    return {
      processor: number('processor'),
      vendorId: word('vendor_id', 'CPU implementer'),
      cpuFamily: word('cpu family', 'CPU architecture'),
      model: word('model', 'CPU part'),
      modelName: word('model name'),
      stepping: word('stepping', 'CPU revision'),
      microcode: word('microcode'),
      cpuMhz: number('cpu MHz'),
      cacheSize: word('cache size'),
      physicalId: word('physical id'),
      siblings: number('siblings'),
      coreId: word('core id'),
      cpuCores: number('cpu cores'),
      apicId: word('apicid'),
      initialApicId: word('initial apicid'),
      fpu: word('fpu'),
      fpuException: word('fpu_exception'),
      cpuIdLevel: number('cpuid level'),
      wp: word('wp'),
      flags: list('flags', 'Features'),
      bugs: list('bugs'),
      bogoMips: number('bogomips', 'BogoMIPS'),
      clFlushSize: number('clflush size'),
      cacheAlignment: number('cache_alignment'),
      addressSizes: word('address sizes'),
      powerManagement: word('power management'),
    }
  })
}
