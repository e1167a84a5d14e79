package pgtest

const rootCacheFolder = "/var/cache/pawl/postgresql"

func cacheFolder() string { return rootCacheFolder }
