from tlint.analyzer.cli import main

raise SystemExit(main())
