/** Concatenates certificates without duplicates. */
export function bundle(certificates: readonly string[]): string {
  return [...new Set(certificates.map((pem) => pem.trim()).filter((pem) => pem !== ''))].map((pem) => `${pem}\n`).join('')
}
