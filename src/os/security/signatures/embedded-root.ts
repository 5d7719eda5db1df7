/**
 * The trusted root of the public instance of Sigstore: its certificate authorities, transparency logs and authorities for time.
 *
 * trusted-root.txt is the target `trusted_root.json` of Sigstore's TUF repository, as it is in seeds.json of the npm package
 * `@sigstore/tuf` 5.0.1 (SHA-256 6494e21ea73fa7ee769f85f57d5a3e6a08725eae1e38c755fc3517c9e6bc0b66). A newer package has a newer one.
 */
import embedded from './trusted-root.txt' with { type: 'text' }

/** The trusted root that comes with this release, and when the package with it was published. */
export const embeddedRoot = { jsonData: embedded, lastRefreshTime: '2026-11-05T00:19:12Z' }
