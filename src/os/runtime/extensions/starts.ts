/** Which configuration each service of an extension last started with. */
export class ServiceStarts {
  readonly #versions = new Map<string, string>()

  /** A run begins with this version of the configuration, empty for none. */
  begin(name: string, version: string): void {
    this.#versions.set(name, version)
  }

  /** Services that started with another version than `current` has now; each counts as started with that one from here on. */
  outdated(current: (name: string) => number | string | undefined): string[] {
    const names = [...this.#versions].filter(([name, version]) => `${current(name) ?? ''}` !== version).map(([name]) => name)
    for (const name of names) this.#versions.set(name, `${current(name) ?? ''}`)
    return names
  }
}
